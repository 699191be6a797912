/** What can be seen without a network: Node, the state directory, programs. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { isOpenToOthers, isNotFound } from "../../serve/secret-file.ts";
import type { Terminal } from "../terminal.ts";
import { failed, ok, warning, type Finding } from "./finding.ts";

/** The oldest Node that the agent runs on. */
const OLDEST_NODE = 20;

/** Checks the version of Node. */
export function checkNodeVersion(version: string): Finding {
  if (Number(version.split(".")[0]) >= OLDEST_NODE) return ok("node", `Node ${version}`);
  return failed("node", `this is Node ${version}`, `Install Node ${OLDEST_NODE} or newer from https://nodejs.org.`);
}

/** Checks that the state directory can be written, by its owner only. */
export async function checkStateDir(path: string): Promise<Finding> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) return failed("state", `${path} is no directory`, "Name another one with --state.");
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    if (await isOpenToOthers(path))
      return warning("state", `other users of this machine can look into ${path}`, `Close it with: chmod 700 ${path}`);
    return ok("state", `${path} can be used`);
  } catch (error) {
    if (isNotFound(error)) return ok("state", `${path} is made at the first start`);
    return failed("state", `${path} cannot be read and written`, "Make this user its owner, or name another directory with --state.");
  }
}

/** Checks that a command can be found the way the agent starts it. */
export async function checkProgram(env: Terminal["env"], command: string): Promise<Finding> {
  const names =
    process.platform === "win32" ? ["", ...(env["PATHEXT"] ?? ".EXE;.CMD;.BAT").split(";")].map((end) => command + end) : [command];
  const isPath = isAbsolute(command) || command.includes("/") || (process.platform === "win32" && command.includes("\\"));
  const places = isPath ? names : (env["PATH"] ?? "").split(delimiter).flatMap((place) => names.map((name) => join(place, name)));
  for (const place of places) {
    if (
      (await access(place, constants.X_OK).then(
        () => true,
        () => false,
      )) &&
      (await stat(place)).isFile()
    )
      return ok("program", `${command} is ${place}`);
  }
  return failed(
    "program",
    `the command ${command} was not found`,
    `Install it, or give its full path. PATH here is ${env["PATH"] ?? "empty"}.`,
  );
}
