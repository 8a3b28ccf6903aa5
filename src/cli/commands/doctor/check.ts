import type { Environment, LoadedConfig } from '../../../kit/config/config.ts';
import type { SupervisorStatus } from '../../../supervisor/control-protocol.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import type { CommandContext } from '../../context.ts';

/** Result of a check. */
export interface Finding {
  /** Name of the check: `ports`, `stores`. */
  name: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
  /** What to do; null if nothing is needed. */
  remedy: string | null;
  /** Whether `--fix` fixed it. */
  fixed: boolean;
}

/** One fact found by a check. `fix` fixes it without data loss and returns what it did. */
export interface Fact {
  status: Finding['status'];
  message: string;
  remedy?: string;
  fix?: () => string;
}

/** The platform being checked. */
export interface CheckTarget {
  context: CommandContext;
  loaded: LoadedConfig;
  env: Environment;
  folder: DataFolder;
  /** Null if no supervisor runs on this data folder, or it does not answer. */
  running: SupervisorStatus | null;
  now: number;
}

export type Check = (target: CheckTarget) => Fact[] | Promise<Fact[]>;

export const fine = (message: string): Fact => ({ status: 'ok', message });
export const warning = (message: string, remedy: string, fix?: () => string): Fact => ({
  status: 'warn',
  message,
  remedy,
  ...(fix ? { fix } : {}),
});
export const failure = (message: string, remedy: string, fix?: () => string): Fact => ({
  status: 'fail',
  message,
  remedy,
  ...(fix ? { fix } : {}),
});
