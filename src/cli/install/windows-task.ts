/** A scheduled task of Windows that starts at logon (Task Scheduler schema 1.2). */
import { win32 } from "node:path";
import type { ServiceKind, ServicePlan } from "./service.ts";
import { xmlText } from "./xml.ts";

/** The task scheduler for the user whose local data are here. */
export function windowsTask(localAppData: string): ServiceKind {
  const path = (name: string): string => win32.join(localAppData, "longline", `${name}.task.xml`);
  return {
    system: "Windows scheduled task",
    isTested: false,
    path,
    render: renderTask,
    // `schtasks` reads its XML in the encoding that the declaration names.
    encoding: "utf16le",
    mode: 0o644,
    start: (name) => [
      ["schtasks", "/Create", "/TN", name, "/XML", path(name), "/F"],
      ["schtasks", "/Run", "/TN", name],
    ],
    stop: (name) => [
      ["schtasks", "/End", "/TN", name],
      ["schtasks", "/Delete", "/TN", name, "/F"],
    ],
    removed: () => [],
    hint: "It starts when you log on.",
  };
}

function renderTask({ description, argv, cwd, env }: ServicePlan): string {
  const [program = "", ...args] = argv;
  // A task has no environment of its own, so a shell sets it; each part is quoted for it.
  const set = Object.entries(env).map(([name, value]) => `set "${name}=${value.replaceAll("%", "%%")}"`);
  const command = [...set, [program, ...args].map(quoteArgument).join(" ")].join(" && ");
  return `\uFEFF<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>${xmlText(description)}</Description></RegistrationInfo>
  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT1M</Interval><Count>999</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>cmd.exe</Command>
      <Arguments>${xmlText(`/d /s /c "${command}"`)}</Arguments>
      <WorkingDirectory>${xmlText(cwd)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`;
}

/** One argument as CommandLineToArgvW takes it apart: backslashes count only in front of a quote. */
export function quoteArgument(word: string): string {
  if (/^[\w./:\\=@-]+$/.test(word)) return word;
  return `"${word.replaceAll(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"`;
}
