import type { Environment, LoadedConfig } from '../../../kit/config.ts';
import type { CommandContext } from '../../context.ts';
import type { SupervisorStatus } from '../../supervisor/control-protocol.ts';
import type { DataFolder } from '../../supervisor/data-folder.ts';

/** What a check found out. */
export interface Finding {
  /** The check: `ports`, `stores`. */
  name: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
  /** What to do about it; null when there is nothing to do. */
  remedy: string | null;
  /** Whether `--fix` has mended it. */
  fixed: boolean;
}

/** One fact a check found; `fix` mends it without losing anything, and says what it did. */
export interface Fact {
  status: Finding['status'];
  message: string;
  remedy?: string;
  fix?: () => string;
}

/** What the checks look at. */
export interface Patient {
  context: CommandContext;
  loaded: LoadedConfig;
  env: Environment;
  folder: DataFolder;
  /** Null when nothing runs on this data folder, or when it does not answer. */
  running: SupervisorStatus | null;
  now: number;
}

export type Check = (patient: Patient) => Fact[] | Promise<Fact[]>;

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
