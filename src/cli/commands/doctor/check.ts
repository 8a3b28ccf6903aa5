import type { Environment, LoadedConfig } from '../../../kit/config/config.ts';
import type { SupervisorStatus } from '../../../supervisor/control-protocol.ts';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import type { CommandContext } from '../../context.ts';

/** A result of a check, as printed by `svc doctor`. */
export interface Finding {
  /** Name of the check, such as `ports`. */
  name: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
  /** How to solve the problem. Null if there is no problem. */
  remedy: string | null;
  /** Whether `--fix` solved the problem. */
  fixed: boolean;
}

/**
 * Result of a check before `--fix` is applied. `fix` solves the problem without data loss and returns a description of
 * the change.
 */
export interface Fact {
  status: Finding['status'];
  message: string;
  remedy?: string;
  fix?: () => string;
}

/** The platform to check: its configuration, its data folder and its state. */
export interface CheckTarget {
  context: CommandContext;
  loaded: LoadedConfig;
  env: Environment;
  folder: DataFolder;
  /** Status of the platform, or null if no supervisor of this data folder answers. */
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
