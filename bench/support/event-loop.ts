/**
 * The longest blocks of the event loop while `work` ran, in ms: how late a timer of 1 ms came, and the most CPU time that this
 * thread took between two of its calls, which other programs on the machine do not prolong.
 */
export interface LongestBlock {
  wallMs: number;
  cpuMs: number;
}

export async function longestBlock(work: () => Promise<unknown>): Promise<LongestBlock> {
  const longest: LongestBlock = { wallMs: 0, cpuMs: 0 };
  let last = performance.now();
  let lastCpu = threadCpuMs();
  const timer = setInterval(() => {
    const [now, cpu] = [performance.now(), threadCpuMs()];
    longest.wallMs = Math.max(longest.wallMs, now - last - 1);
    longest.cpuMs = Math.max(longest.cpuMs, cpu - lastCpu);
    [last, lastCpu] = [now, cpu];
  }, 1);
  try {
    await work();
    await new Promise((resolve) => setTimeout(resolve, 5));
  } finally {
    clearInterval(timer);
  }
  return longest;
}

/** CPU time of this thread so far. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
