/** An X server without a screen, and a known picture on it. */
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startProcess, temporaryDir } from "./processes.ts";

/** Quarters of the picture, left to right, top to bottom, as red, green and blue. */
export const QUARTERS: readonly (readonly [number, number, number])[] = [
  [200, 30, 40],
  [20, 180, 60],
  [30, 60, 220],
  [240, 200, 10],
];

export interface XDisplay {
  /** For the variable DISPLAY. */
  display: string;
  stop(): Promise<void>;
}

/** Fails with what to install when a program is missing. */
export function needPrograms(...programs: readonly string[]): void {
  const missing = programs.filter((program) => !hasProgram(program));
  if (missing.length === 0) return;
  throw new Error(`These tests need ${missing.join(", ")}. On Debian: apt-get install xvfb x11-apps xclip maim scrot`);
}

function hasProgram(program: string): boolean {
  try {
    execFileSync("/bin/sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Starts Xvfb and shows the four quarters over all of its screen. */
export async function startXDisplay(width: number, height: number): Promise<XDisplay> {
  needPrograms("Xvfb", "xwud");
  const server = startProcess("Xvfb", ["-displayfd", "1", "-screen", "0", `${width}x${height}x24`, "-nolisten", "tcp", "-noreset"]);
  const display = `:${await server.line("stdout", (line) => /^\d+$/.test(line))}`;
  const files = await temporaryDir();
  const picture = join(files.path, "quarters.xwd");
  await writeFile(picture, quarters(width, height));
  const viewer = startProcess("xwud", ["-noclick", "-geometry", "+0+0", "-in", picture], { env: { DISPLAY: display } });
  return {
    display,
    stop: async () => {
      await viewer.stop();
      await server.stop();
      await files.remove();
    },
  };
}

/** A window dump (XWDFile.h): 25 numbers, a name, and the rows. */
function quarters(width: number, height: number): Buffer {
  const head = Buffer.alloc(104);
  const fields = [
    104,
    7,
    2,
    24,
    width,
    height,
    0,
    0,
    32,
    0,
    32,
    32,
    width * 4,
    4,
    0xff0000,
    0xff00,
    0xff,
    8,
    256,
    0,
    width,
    height,
    0,
    0,
    0,
  ];
  for (const [index, value] of fields.entries()) head.writeUInt32BE(value, index * 4);
  const rows = Buffer.alloc(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const [red, green, blue] = QUARTERS[(y < height / 2 ? 0 : 2) + (x < width / 2 ? 0 : 1)] ?? [0, 0, 0];
      rows.set([blue, green, red, 0], (y * width + x) * 4);
    }
  }
  return Buffer.concat([head, rows]);
}
