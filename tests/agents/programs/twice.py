"""Asks for a new password twice, as `passwd` does."""

import getpass
import sys

first = getpass.getpass("New password: ")
second = getpass.getpass("Retype new password: ")
if first != second:
    sys.exit("Sorry, passwords do not match.")
print(f"password updated, {len(first)} letters")
