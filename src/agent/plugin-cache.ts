import { mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostPlugin } from '../contracts/index.ts';
import { openStream } from '../http/client.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import { minutes } from '../kit/time/duration.ts';
import { integrityOf, type LoadedPlugin, unpackFolder } from '../plugins/index.ts';

const DOWNLOAD_TIMEOUT_MS = minutes(1);

export interface PluginCacheDeps {
  /** The folder `plugins` in the agent's home. Plugins are not allowed to read any other folder of the agent's home. */
  folder: string;
  gateway: string;
  /** Plugins from local folders, which take precedence over the gateway. */
  local: readonly LoadedPlugin[];
  token(): Promise<string>;
  logger: Logger;
}

/** Cache of downloaded plugins by digest. The digest of a cached plugin is verified once per start of the agent. */
export class PluginCache {
  readonly #deps: PluginCacheDeps;
  readonly #verified = new Map<string, string>();
  readonly #fetching = new Map<string, Promise<string>>();

  constructor(deps: PluginCacheDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the folder of a plugin version. Returns undefined if the version is not installed and no intact copy is
   * cached.
   */
  async find({ id, version, integrity }: HostPlugin): Promise<string | undefined> {
    const { local, folder, logger } = this.#deps;
    const installed = local.find((plugin) => plugin.id === id && plugin.version === version);
    if (installed) return installed.root;
    if (integrity === null) return undefined;
    const known = this.#verified.get(integrity);
    if (known) return known;
    const path = join(folder, nameOf(id, integrity));
    // Cached files might have been modified since the download.
    const actual = await integrityOf(path).catch(() => undefined);
    if (actual === undefined) return undefined;
    if (actual !== integrity) {
      logger.warn(`The cached files of plugin ${id} were modified; downloading them again`, { pluginId: id });
      await rm(path, { recursive: true, force: true });
      return undefined;
    }
    const root = await realpath(path);
    this.#verified.set(integrity, root);
    return root;
  }

  /** Downloads the plugin from the gateway. Throws INTEGRITY_MISMATCH if the digest differs. */
  fetch(plugin: HostPlugin): Promise<string> {
    const key = `${plugin.id} ${plugin.integrity}`;
    let loading = this.#fetching.get(key);
    if (!loading) {
      loading = this.#load(plugin).finally(() => this.#fetching.delete(key));
      this.#fetching.set(key, loading);
    }
    return loading;
  }

  async #load(plugin: HostPlugin): Promise<string> {
    const { folder, logger } = this.#deps;
    const { id, integrity } = plugin;
    if (integrity === null) {
      throw new PlatformError(
        'HOST_UNAVAILABLE',
        `Plugin ${id} is not installed on this host and cannot be downloaded, because it has no digest.`,
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const draft = await mkdtemp(join(folder, '.new-'));
    try {
      await this.#download(id, draft);
      const actual = await integrityOf(draft);
      if (actual !== integrity) {
        throw new PlatformError(
          'INTEGRITY_MISMATCH',
          `The files of plugin ${id} from the gateway do not match the announced digest. If the plugin is being edited, try again.`,
          { details: { pluginId: id, expected: integrity, actual } },
        );
      }
      const path = join(folder, nameOf(id, integrity));
      await rm(path, { recursive: true, force: true });
      await rename(draft, path);
      const root = await realpath(path);
      this.#verified.set(integrity, root);
      logger.info(`Downloaded plugin ${id} ${plugin.version}`, { pluginId: id });
      await this.#removeOld(id);
      return root;
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
  }

  async #download(id: string, draft: string): Promise<void> {
    const path = `/api/v1/marketplace/plugins/${encodeURIComponent(id)}/package`;
    const headers = { authorization: `Bearer ${await this.#deps.token()}` };
    const response = await openStream(this.#deps.gateway, path, {
      headers,
      signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS),
    });
    await unpackFolder(response.body as unknown as AsyncIterable<Uint8Array>, draft);
  }

  /**
   * Removes versions of a plugin that were not used since the agent started. Used versions are kept, because running
   * processes can still load their files.
   */
  async #removeOld(id: string): Promise<void> {
    const { folder } = this.#deps;
    const used = new Set(this.#verified.values());
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      if (!name.startsWith(`${safeId(id)}@`) || used.has(await realpath(path))) continue;
      await rm(path, { recursive: true, force: true });
    }
  }
}

function safeId(id: string): string {
  return id.replace('/', '+');
}

function nameOf(id: string, integrity: string): string {
  return `${safeId(id)}@${Buffer.from(integrity).toString('hex').slice(14, 54)}`;
}
