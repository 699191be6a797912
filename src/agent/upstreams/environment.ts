/** The environment of a child: an allow-list, so that no secret of ours reaches a tool server. Pure. */

type Environment = Readonly<Record<string, string | undefined>>;

const POSIX = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];
/** What Termux programs need to find their files and interpreters. */
const ANDROID = ["PREFIX", "LD_PRELOAD", "ANDROID_DATA", "ANDROID_ROOT", "ANDROID_ART_ROOT", "EXTERNAL_STORAGE", "TERMUX_VERSION"];
/** Without these, programs on Windows find neither their libraries nor the user's folders. */
const WINDOWS = [
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LANG",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PATH",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "PROGRAMW6432",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
];
/** What a program needs to reach the user's desktop. */
const DESKTOP = [
  "DISPLAY",
  "WAYLAND_DISPLAY",
  "XAUTHORITY",
  "XDG_CURRENT_DESKTOP",
  "XDG_RUNTIME_DIR",
  "XDG_SESSION_TYPE",
  "DBUS_SESSION_BUS_ADDRESS",
];

/** Allow-listed variables, then the configured ones; `LONGLINE_*` never, and exported shell functions neither. */
export function childEnvironment(
  own: Environment,
  configured: Readonly<Record<string, string>> = {},
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  return environment(own, configured, platform, allowed(platform));
}

/** The same, with what is needed to reach the desktop: for the built-in tools that show or read it. */
export function desktopEnvironment(own: Environment, platform: NodeJS.Platform = process.platform): Record<string, string> {
  return environment(own, {}, platform, [...allowed(platform), ...DESKTOP]);
}

/** The value of a variable; on Windows names are the same in any case. */
export function variable(env: Environment, name: string, platform: NodeJS.Platform = process.platform): string | undefined {
  if (platform !== "win32") return env[name];
  const found = Object.keys(env).find((key) => key.toUpperCase() === name.toUpperCase());
  return found === undefined ? undefined : env[found];
}

function allowed(platform: NodeJS.Platform): readonly string[] {
  if (platform === "win32") return WINDOWS;
  return platform === "android" ? [...POSIX, ...ANDROID] : POSIX;
}

function environment(
  own: Environment,
  configured: Readonly<Record<string, string>>,
  platform: NodeJS.Platform,
  names: readonly string[],
): Record<string, string> {
  const env = new Map<string, string>();
  for (const name of names) {
    const value = variable(own, name, platform);
    if (value !== undefined && !value.startsWith("()")) env.set(name, value);
  }
  for (const [name, value] of Object.entries(configured)) {
    // SECURITY: our own settings hold keys; on Windows any case of the name is the same variable.
    if (name.toUpperCase().startsWith("LONGLINE_")) continue;
    env.set(platform === "win32" ? name.toUpperCase() : name, value);
  }
  return Object.fromEntries(env);
}
