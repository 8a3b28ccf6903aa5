/**
 * Longest blocks of the event loop while `work` ran, in ms: the maximum delay of a 1 ms timer, and the maximum CPU time of
 * this thread between two timer calls, which is independent of other processes.
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

/** Total CPU time of this thread. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
