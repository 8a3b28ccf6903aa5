import { type CliRun, runCli } from '../support/cli.ts';
import { userEnvironment } from '../support/user-environment.ts';

export type SvcRun = CliRun;

/** Runs `svc` in `cwd` without a terminal. */
export const runSvc = (
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<SvcRun> => runCli(args, { cwd, env: { ...userEnvironment(), ...env } });
