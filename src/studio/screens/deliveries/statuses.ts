/** Value of the filter for deliveries whose handler failed, as the charts of the overview count them. */
export const FAILURES = 'failures';
const FAILED = ['failed', 'dead', 'interrupted'];

/** Returns the statuses that a value of the filter stands for. */
export function statusesOf(value: string | undefined): string[] | undefined {
  if (value === undefined) return undefined;
  return value === FAILURES ? FAILED : [value];
}
