import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  type CommandResult,
  MANIFEST_FILE,
  ManifestV3,
  type McpPluginSource,
  McpPluginSource as Source,
} from '../../../src/contracts/index.ts';
import { writeMcpPlugin } from '../../../src/daemons/marketplace/sources/mcp-plugin.ts';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { createDescriber, type ExecutionBackend, resolveDependencies } from '../../../src/plugins/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { requestFor } from '../support.ts';

export const HOSTILE = join(import.meta.dirname, '../../fixtures/mcp/hostile.js');
const PACKAGE = 'hostile';

export interface WrappedServer {
  root: string;
  manifest: ManifestV3;
  /** Calls a tool and returns the whole result of its command. */
  call(tool: string, input?: unknown, more?: object): Promise<CommandResult>;
}

/** A source of the hostile server. */
export function hostile(more: Partial<McpPluginSource> = {}): McpPluginSource {
  return Source.parse({ id: 'hostile', package: PACKAGE, ...more });
}

/** Wraps a server as a plugin in a folder of its own, without a package registry. */
export async function wrapServer(
  backend: ExecutionBackend,
  source: McpPluginSource = hostile(),
): Promise<WrappedServer> {
  const installed = await tempDir();
  if (source.package === PACKAGE) {
    const folder = join(installed, 'node_modules', PACKAGE);
    await mkdir(folder, { recursive: true });
    await cp(HOSTILE, join(folder, 'hostile.js'));
    const manifest = { name: PACKAGE, version: '1.0.0', type: 'module', bin: 'hostile.js' };
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  }
  return wrapFolder(backend, source, installed);
}

/** Wraps the server whose package is in `node_modules` of a folder, as a plugin in the folder `into`. */
export async function wrapFolder(
  backend: ExecutionBackend,
  source: McpPluginSource,
  installed: string,
  into?: string,
): Promise<WrappedServer> {
  const root = into ?? join(await tempDir(), 'plugin');
  const describer = createDescriber(backend, systemRandom());
  await writeMcpPlugin(
    source,
    root,
    { cwd: root, signal: new AbortController().signal },
    { keep: installed, list: (plugin, permissions) => describer.mcpTools(plugin, permissions, 'default') },
  );
  const manifest = ManifestV3.parse(JSON.parse(await readFile(join(root, MANIFEST_FILE), 'utf8')));
  return {
    root,
    manifest,
    call(tool, input = {}, more = {}) {
      const command = manifest.commands.find(({ id }) => id === `${source.id}_${tool}`);
      if (!command) throw new Error(`There is no command for ${tool}.`);
      const { handler, input: schema, permissions = manifest.permissions } = command;
      return backend.run(
        requestFor(handler, {
          ...{ plugin: source.id, root, input, permissions, timeoutMs: 20_000 },
          schemas: schema ? { input: schema } : {},
          ...more,
        }),
      );
    },
  };
}

/** The first text of a result. */
export function textOf({ result }: CommandResult): string {
  return (result as { content: Array<{ text: string }> }).content[0]!.text;
}

/** Starts an HTTP server on this machine that ends with the test. */
export async function listening(
  onRequest: RequestListener = (_request, response) => void response.end('hello'),
): Promise<{ url: string; port: number; server: Server }> {
  const server = createServer(onRequest);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, server };
}

/** Reads the JSON of a request. */
export async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  return JSON.parse(Buffer.concat(await request.toArray()).toString('utf8'));
}

export const EVERYTHING = '@modelcontextprotocol/server-everything';

/** A folder with a published server and its dependencies in `node_modules`, as npm installs them. */
export async function installedEverything(): Promise<string> {
  const folder = await tempDir();
  for (const { path } of await resolveDependencies(packageRoot, [EVERYTHING]))
    await cp(path, join(folder, path.slice(packageRoot.length)), { recursive: true });
  return folder;
}
