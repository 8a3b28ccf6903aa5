import { readdirSync, readFileSync } from 'node:fs';

const US_PER_TICK = 10_000;

/** CPU time of a process and its running descendants in microseconds. Linux only. */
export function cpuUsOf(pid: number): number {
  return sum(familyOf(pid), (member) => sum(tasksOf(member), (task) => cpuOfTask(member, task)));
}

/** Like `cpuUsOf`, and counts children that ended, which it waited for. For servers with a process per connection. */
export function cpuUsWithEndedOf(pid: number): number {
  const stat = unlessGone(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), '');
  // The fields after the name, which may contain spaces, start with the third one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const endedTicks = Number(fields[13] ?? 0) + Number(fields[14] ?? 0);
  return cpuUsOf(pid) + endedTicks * US_PER_TICK;
}

/** Resident memory of a process and its running descendants in MB. Linux only. */
export function rssMbOf(pid: number): number {
  return sum(familyOf(pid), (member) => {
    const status = unlessGone(() => readFileSync(`/proc/${member}/status`, 'utf8'), '');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  });
}

/** The process and all that it started and that still runs. Linux. */
export function familyOf(pid: number): number[] {
  const children = tasksOf(pid).flatMap((task) =>
    unlessGone(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'), '')
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );
  return [pid, ...children.flatMap(familyOf)];
}

function tasksOf(pid: number): string[] {
  return unlessGone(() => readdirSync(`/proc/${pid}/task`), []);
}

/** A process or thread may end between two reads. */
function unlessGone<Value>(read: () => Value, otherwise: Value): Value {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** From the scheduler's statistics in nanoseconds; `stat` only counts hundredths of a second. */
function cpuOfTask(pid: number, task: string): number {
  const text = unlessGone(() => readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8'), '0');
  return Number(text.split(' ')[0]) / 1000;
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
