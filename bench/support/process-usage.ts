import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of a process and its running descendants in microseconds. Linux only. */
export function cpuUsOf(pid: number): number {
  return sum(familyOf(pid), (member) => sum(tasksOf(member), (task) => cpuOfTask(member, task)));
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
