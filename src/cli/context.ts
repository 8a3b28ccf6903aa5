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
  /** Client of the gateway. The client uses the token from flags or environment, or the credentials of this machine. */
  client: Client;
  /** Describes all commands. Commands use this function because importing the command table would create a cycle. */
  describeCommands(): Promise<CommandDescription[]>;
}
