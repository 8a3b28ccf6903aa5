import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { tempDir } from '../../support/daemon.ts';
import { type Files, pluginArchive } from './support.ts';

export interface TestRegistry {
  url: string;
  /** Publishes a package; `files` hold its package.json. */
  publish(name: string, version: string, files: Files): Promise<void>;
  /** Serves other bytes for a version than those that were published. */
  forge(name: string, version: string, files: Files): Promise<void>;
  tag(name: string, tag: string, version: string): void;
}

interface Package {
  versions: Record<string, object>;
  'dist-tags': Record<string, string>;
}

/** An npm registry: documents and archives of what is published to it. What calls npm in this test finds it. */
export async function startRegistry(): Promise<TestRegistry> {
  const archives = new Map<string, Buffer>();
  const packages = new Map<string, Package>();
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1));
    const found = packages.get(path);
    if (archives.has(path)) response.end(archives.get(path));
    else if (found) response.end(JSON.stringify({ name: path, ...found }));
    else response.writeHead(404).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const saved = { ...process.env };
  process.env.npm_config_registry = url;
  process.env.npm_config_cache = await tempDir();
  process.env.npm_config_fetch_retries = '0';
  onTestFinished(() => {
    process.env = saved;
    server.closeAllConnections();
    server.close();
  });
  return {
    url,
    async publish(name, version, files) {
      const bytes = await readFile(await pluginArchive(files));
      archives.set(`${name}-${version}.tgz`, bytes);
      const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
      const known = packages.get(name) ?? { versions: {}, 'dist-tags': {} };
      known.versions[version] = {
        ...(files['package.json'] as object),
        name,
        version,
        dist: { tarball: `${url}/${encodeURIComponent(name)}-${version}.tgz`, integrity },
      };
      known['dist-tags'].latest = version;
      packages.set(name, known);
    },
    async forge(name, version, files) {
      archives.set(`${name}-${version}.tgz`, await readFile(await pluginArchive(files)));
    },
    tag(name, tag, version) {
      packages.get(name)!['dist-tags'][tag] = version;
    },
  };
}
