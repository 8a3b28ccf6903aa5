import type { Client } from '../http/client.ts';
import { type LoadedConfig, loadConfig } from '../kit/config/config.ts';
import { dataFolder } from '../supervisor/data-folder.ts';
import { COMMANDS } from './command-table/command-table.ts';
import type { CommandContext } from './context.ts';
import { createGatewayClient } from './gateway-client.ts';

export interface ContextOptions
  extends Omit<CommandContext, 'platform' | 'folder' | 'client' | 'describeCommands'> {}

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
    async describeCommands() {
      const { describeCommands } = await import('./describe-commands.ts');
      return describeCommands(COMMANDS);
    },
  };
  return context;
}
