/** PowerShell as a program with one script. Rendered and unit-tested; untested on a real Windows machine. */

/** Arguments of powershell.exe that run a script; encoded, so that no quoting is needed (PowerShell -EncodedCommand: UTF-16LE in Base64). */
export function powershellArgs(script: string): string[] {
  return ["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", Buffer.from(script, "utf16le").toString("base64")];
}

/** A text as a PowerShell literal: only the single quote is special in it, and the quotes that PowerShell takes for one. */
export function powershellText(text: string): string {
  return `'${text.replaceAll(/['\u2018\u2019\u201a\u201b]/g, "$&$&")}'`;
}
