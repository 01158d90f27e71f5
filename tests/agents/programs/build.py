"""Prints a build of 2,000 lines that fails, with three errors and some warnings among them."""

import sys

for number in range(1, 2001):
    if number in (700, 1204, 1731):
        print(f"src/module_{number}.c:{number % 90 + 3}:9: error: 'counter_{number}' undeclared (first use in this function)")
    elif number % 400 == 0:
        print(f"src/module_{number}.c:12:5: warning: unused variable 'spare_{number}' [-Wunused-variable]")
    else:
        print(f"[{number * 100 // 2000:3d}%] Building C object CMakeFiles/product.dir/src/module_{number}.c.o")
print("make: *** [Makefile:12: all] Error 2")
sys.exit(2)
