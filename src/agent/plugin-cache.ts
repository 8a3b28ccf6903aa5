import { mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostPlugin } from '../contracts/index.ts';
import { openStream } from '../http/client.ts';
import { minutes } from '../kit/duration.ts';
import { PlatformError } from '../kit/errors.ts';
import type { Logger } from '../kit/logger.ts';
import { integrityOf, type LoadedPlugin, unpackFolder } from '../plugins/index.ts';

const FETCH_MS = minutes(1);

export interface PluginCache {
  /** The folder of exactly this plugin, if it is here. */
  find(plugin: HostPlugin): Promise<string | undefined>;
  /** Fetches it from the gateway. Throws INTEGRITY_MISMATCH when what comes is not what was announced. */
  fetch(plugin: HostPlugin): Promise<string>;
}

export interface PluginCacheDeps {
  /** `plugins` of the agent's home: the one folder below it that plugins may read. */
  folder: string;
  gateway: string;
  /** Folders that this machine's owner gave; they go before what the gateway has. */
  local: readonly LoadedPlugin[];
  token(): Promise<string>;
  logger: Logger;
}

/** Plugins by their digest: fetched once, checked whenever the agent starts to use them. */
export function createPluginCache(deps: PluginCacheDeps): PluginCache {
  const { folder, local, logger } = deps;
  const checked = new Map<string, string>();
  const fetching = new Map<string, Promise<string>>();

  async function find({ id, version, integrity }: HostPlugin): Promise<string | undefined> {
    const own = local.find((plugin) => plugin.id === id && plugin.version === version);
    if (own) return own.root;
    if (integrity === null) return undefined;
    const known = checked.get(integrity);
    if (known) return known;
    const path = join(folder, nameOf(id, integrity));
    // What lies on a disk may have been changed since it was fetched.
    const actual = await integrityOf(path).catch(() => undefined);
    if (actual === undefined) return undefined;
    if (actual !== integrity) {
      logger.warn(`The cached files of plugin ${id} were changed; they are fetched anew`, { pluginId: id });
      await rm(path, { recursive: true, force: true });
      return undefined;
    }
    const root = await realpath(path);
    checked.set(integrity, root);
    return root;
  }

  async function load(plugin: HostPlugin): Promise<string> {
    const { id, integrity } = plugin;
    if (integrity === null) {
      throw new PlatformError(
        'HOST_UNAVAILABLE',
        `The plugin ${id} is not on this host and has no digest to fetch it by.`,
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const draft = await mkdtemp(join(folder, '.new-'));
    try {
      await download(id, draft);
      const actual = await integrityOf(draft);
      if (actual !== integrity) {
        throw new PlatformError(
          'INTEGRITY_MISMATCH',
          `The files of plugin ${id} that the gateway sent are not those it announced; if they are being changed, try again.`,
          { details: { pluginId: id, expected: integrity, actual } },
        );
      }
      const path = join(folder, nameOf(id, integrity));
      await rm(path, { recursive: true, force: true });
      await rename(draft, path);
      const root = await realpath(path);
      checked.set(integrity, root);
      logger.info(`Fetched plugin ${id} ${plugin.version}`, { pluginId: id });
      await removeOld(id);
      return root;
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
  }

  async function download(id: string, draft: string): Promise<void> {
    const path = `/api/v1/marketplace/plugins/${encodeURIComponent(id)}/package`;
    const headers = { authorization: `Bearer ${await deps.token()}` };
    const response = await openStream(deps.gateway, path, { headers, signal: AbortSignal.timeout(FETCH_MS) });
    await unpackFolder(response.body as unknown as AsyncIterable<Uint8Array>, draft);
  }

  /** Versions that this agent has not used since it started; what it runs may yet load from the others. */
  async function removeOld(id: string): Promise<void> {
    const used = new Set(checked.values());
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      if (!name.startsWith(`${safeId(id)}@`) || used.has(await realpath(path))) continue;
      await rm(path, { recursive: true, force: true });
    }
  }

  return {
    find,
    fetch(plugin) {
      const key = `${plugin.id} ${plugin.integrity}`;
      let loading = fetching.get(key);
      if (!loading) {
        loading = load(plugin).finally(() => fetching.delete(key));
        fetching.set(key, loading);
      }
      return loading;
    },
  };
}

function safeId(id: string): string {
  return id.replace('/', '+');
}

/** The digest in the name: two versions never share a folder. */
function nameOf(id: string, integrity: string): string {
  return `${safeId(id)}@${Buffer.from(integrity).toString('hex').slice(14, 54)}`;
}
