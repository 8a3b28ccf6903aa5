import type { LockEntry } from '../../../contracts/index.ts';
import type { PluginRegistry } from '../../../plugins/index.ts';
import type { MarketplaceAction } from './announce.ts';
import type { Lifecycle, LifecycleReason } from './lifecycle.ts';
import { entryOf, type LockEntries } from './lock-entries.ts';

export interface ChangeEventsDeps {
  /** Reads the plugins on disk. */
  load: () => Promise<PluginRegistry>;
  lifecycle: Lifecycle;
  entries: Pick<LockEntries, 'read'>;
  announce: (action: MarketplaceAction, entry: LockEntry) => void;
}

/** Runs the lifecycle hooks of changed plugins, and announces committed changes. */
export interface ChangeEvents {
  /** Runs a hook of a loaded plugin. Does nothing for broken and disabled plugins. */
  runHook(hook: 'onEnable' | 'onDisable', id: string, reason: LifecycleReason): Promise<void>;
  /** Runs `onEnable` of an added or replaced plugin and announces the change. Resolves with the plugin's id. */
  added(reason: LifecycleReason, id: string): Promise<string>;
  announce(action: MarketplaceAction, entry: LockEntry): void;
}

export function createChangeEvents({ load, lifecycle, entries, announce }: ChangeEventsDeps): ChangeEvents {
  async function runHook(hook: 'onEnable' | 'onDisable', id: string, reason: LifecycleReason): Promise<void> {
    const plugin = (await load()).find(id);
    if (plugin) await lifecycle(plugin, hook, reason);
  }

  return {
    runHook,
    announce,
    async added(reason, id) {
      await runHook('onEnable', id, reason);
      const entry = entryOf(await entries.read(), id);
      if (entry) announce(reason, entry);
      return id;
    },
  };
}
