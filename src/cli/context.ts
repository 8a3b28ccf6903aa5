import type { Client } from '../http/client.ts';
import { type Environment, type LoadedConfig, loadConfig } from '../kit/config/config.ts';
import type { Clock } from '../kit/time/clock.ts';
import { type DataFolder, dataFolder } from '../supervisor/data-folder.ts';
import { createGatewayClient } from './gateway-client.ts';
import type { GlobalFlags } from './globals.ts';
import type { Ui } from './ui.ts';

/** Environment of a command. */
export interface CommandContext {
  cwd: string;
  env: Environment;
  globals: GlobalFlags;
  ui: Ui;
  clock: Clock;
  /** The configuration, loaded on first use. */
  platform(): LoadedConfig;
  folder(): DataFolder;
  /** Calls the gateway with the identity from flags, environment or this machine's credentials. */
  client: Client;
}

export interface ContextOptions extends Omit<CommandContext, 'platform' | 'folder' | 'client'> {}

export function createContext(options: ContextOptions): CommandContext {
  const { cwd, env, globals } = options;
  let loaded: LoadedConfig | undefined;
  let client: Promise<Client> | undefined;
  const platform = (): LoadedConfig => {
    loaded ??= loadConfig({ cwd, env, configFile: globals.config, profile: globals.profile });
    return loaded;
  };
  const context: CommandContext = {
    ...options,
    platform,
    folder: () => dataFolder(platform().dataDir),
    client: {
      async call(endpoint, input, callOptions) {
        client ??= createGatewayClient(context);
        return (await client).call(endpoint, input, callOptions);
      },
    },
  };
  return context;
}
