import type { Client } from '../http/client.ts';
import type { Environment, LoadedConfig } from '../kit/config/config.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { DataFolder } from '../supervisor/data-folder.ts';
import type { CommandDescription } from './command-description.ts';
import type { GlobalFlags } from './globals.ts';
import type { Ui } from './ui.ts';

export interface CommandContext {
  cwd: string;
  env: Environment;
  globals: GlobalFlags;
  ui: Ui;
  clock: Clock;
  /** Returns the configuration, which is loaded on first use. */
  platform(): LoadedConfig;
  folder(): DataFolder;
  /** Calls the gateway with the identity from flags, environment or this machine's credentials. */
  client: Client;
  /** Describes all commands. Commands use this function because importing the command table would create a cycle. */
  describeCommands(): Promise<CommandDescription[]>;
}
