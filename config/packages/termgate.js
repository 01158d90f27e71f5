#!/usr/bin/env node
// Runs the binary for this machine, with the same arguments, terminal, signals and end.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const path = require("node:path");

const binary = path.join(__dirname, "bin", process.arch, "termgate");
const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });

for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
// A terminal sends these to the binary too.
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => {});
}
child.on("error", (error) => {
  console.error(`termgate: cannot run ${binary}: ${error.message}`);
  process.exitCode = 1;
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // Node may outlive its own signal, which it does for SIGPIPE.
  process.exitCode = 128 + os.constants.signals[signal];
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
