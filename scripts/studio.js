// Builds the studio, the web console, into dist/studio: hashed files, each also compressed with Brotli.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';

/** Smaller files gain less than their extra header. */
const MIN_COMPRESSED_BYTES = 512;

/** Not in the file that the first screen needs. */
const JSON_FIELD = /\/ui\/json-field\//;
/** Other modules that several screens import form one file. Separate files would need one request each. */
const GROUPS = [{ name: 'shared', minShareCount: 2, minSize: 0, test: (id) => !JSON_FIELD.test(id) }];

export async function buildStudio(root, out) {
  const folder = join(out, 'studio');
  await build({
    root: join(root, 'src', 'studio'),
    base: '/studio/',
    configFile: false,
    logLevel: 'warn',
    plugins: [endpointTable(root)],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2022',
      modulePreload: { polyfill: false },
      // The content security policy forbids data: URLs.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      license: { fileName: 'third-party-licenses.md' },
      rolldownOptions: {
        checks: { pluginTimings: false },
        output: { codeSplitting: { groups: GROUPS } },
      },
    },
  });
  compress(folder);
}

/**
 * Method and path of each endpoint of the contracts. The contracts themselves contain schemas and a validator, which
 * would not fit into the size limit of the first screen.
 */
function endpointTable(root) {
  const id = 'virtual:endpoints';
  return {
    name: 'endpoint-table',
    resolveId: (source) => (source === id ? `\0${id}` : null),
    async load(source) {
      if (source !== `\0${id}`) return null;
      const contracts = await import(join(root, 'src', 'contracts', 'index.ts'));
      const endpoints = Object.entries(contracts).filter(([, value]) => value?.method && value?.path);
      const table = Object.fromEntries(endpoints.map(([name, endpoint]) => [name, rowOf(endpoint)]));
      return `export const ENDPOINTS = ${JSON.stringify(table)};`;
    },
  };
}

/** Method, path, and the query parameter that restricts a list to one namespace. */
function rowOf({ method, path, query }) {
  const parameters = Object.keys((method === 'GET' && query?.shape) || {});
  const namespace = parameters.find((name) => name === 'namespaceId' || name === 'tenantId');
  return namespace ? [method, path, namespace] : [method, path];
}

function compress(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const plain = readFileSync(path);
    if (plain.length < MIN_COMPRESSED_BYTES) continue;
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    const compressed = brotliCompressSync(plain, { params });
    if (compressed.length < plain.length) writeFileSync(`${path}.br`, compressed);
  }
}
