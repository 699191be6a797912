/**
 * How the screen is captured on this machine. Pure. What runs on X11 is tested here with xwd, maim and scrot; the
 * others, Wayland, macOS and Windows are rendered and unit-tested, and untested on real machines.
 */
import { missing, ready, type Ready } from "./availability.ts";
import type { ToolHost } from "./find-program.ts";
import { powershellArgs } from "./powershell.ts";

export interface Capture {
  command: string;
  args: readonly string[];
  /** What the program prints; `file`: it writes a PNG to the path that stands for `FILE` in its arguments. */
  output: "png" | "xwd" | "base64" | "file";
}

/** Stands for the path of a temporary file. */
export const FILE = "\u0000file";

/** Programs for X11, the quickest and plainest first. */
const X11: readonly { program: string; args: readonly string[]; output: Capture["output"] }[] = [
  { program: "maim", args: ["--format=png", "--quality=1"], output: "png" },
  // Its way to standard output opens /dev/stdout, which is no file where a socket stands there.
  { program: "scrot", args: ["--silent", "--overwrite", FILE], output: "file" },
  { program: "import", args: ["-silent", "-window", "root", "png:-"], output: "png" },
  { program: "xwd", args: ["-root", "-silent"], output: "xwd" },
];

/** The way to capture the whole screen, or what is missing. */
export function findCapture(host: ToolHost): Ready<Capture> {
  if (host.platform === "darwin") return ready({ command: "screencapture", args: ["-x", "-t", "png", FILE], output: "file" });
  if (host.platform === "win32") return ready({ command: "powershell.exe", args: powershellArgs(WINDOWS_SCRIPT), output: "base64" });
  return host.env["WAYLAND_DISPLAY"] ? onWayland(host) : onX11(host);
}

function onX11({ env, has }: ToolHost): Ready<Capture> {
  const display = env["DISPLAY"];
  if (!display) return missing("there is no screen: DISPLAY is not set", "start the agent inside the desktop session");
  const found = X11.find(({ program }) => has(program));
  if (found) return ready({ command: found.program, args: found.args, output: found.output });
  if (has("ffmpeg"))
    return ready({
      command: "ffmpeg",
      args: ["-nostdin", "-loglevel", "error", "-f", "x11grab", "-i", display, "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-"],
      output: "png",
    });
  return missing("no program that captures the screen is installed", "install maim, scrot, ImageMagick, x11-apps (xwd) or ffmpeg");
}

/** X11 programs see no Wayland windows, so that they are no help here. */
function onWayland({ has }: ToolHost): Ready<Capture> {
  if (has("grim")) return ready({ command: "grim", args: ["-t", "png", "-"], output: "png" });
  if (has("gnome-screenshot")) return ready({ command: "gnome-screenshot", args: [`--file=${FILE}`], output: "file" });
  if (has("spectacle"))
    return ready({ command: "spectacle", args: ["--background", "--nonotify", "--fullscreen", "--output", FILE], output: "file" });
  return missing("no program that captures a Wayland screen is installed", "install grim, gnome-screenshot or spectacle");
}

/** All screens, as a PNG in Base64. */
const WINDOWS_SCRIPT = [
  "$ErrorActionPreference = 'Stop'",
  "Add-Type -AssemblyName System.Windows.Forms, System.Drawing",
  "$area = [Windows.Forms.SystemInformation]::VirtualScreen",
  "$picture = New-Object Drawing.Bitmap $area.Width, $area.Height",
  "$canvas = [Drawing.Graphics]::FromImage($picture)",
  "$canvas.CopyFromScreen($area.Left, $area.Top, 0, 0, $picture.Size)",
  "$stream = New-Object IO.MemoryStream",
  "$picture.Save($stream, [Drawing.Imaging.ImageFormat]::Png)",
  "[Console]::Out.Write([Convert]::ToBase64String($stream.ToArray()))",
].join("; ");
