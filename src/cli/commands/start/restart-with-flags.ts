import type { ServiceName } from '../../../contracts/index.ts';
import { MEMORY_VARIABLES, nodeFlagsOf } from '../../../daemons/node-flags.ts';
import { entryFile } from '../../../kit/files/paths.ts';

/**
 * Replaces this process by itself with the Node flags of the service, which are effective only from the start of a
 * process. The process id stays the same. Does nothing if the flags are set, or if Node cannot replace a process.
 */
export function restartWithFlags(name: ServiceName): void {
  const missing = nodeFlagsOf(name).filter((flag) => !process.execArgv.includes(flag));
  if (missing.length === 0 || !process.execve) return;
  const { execPath, execArgv, argv, env } = process;
  const words = [execPath, ...execArgv, ...missing, entryFile('cli'), ...argv.slice(2)];
  process.execve(execPath, words, { ...MEMORY_VARIABLES, ...env });
}
