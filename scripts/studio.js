// Builds the studio, the web console, into dist/studio: hashed files, compressed with Brotli.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';

/** Smaller files gain less than their extra header. */
const MIN_COMPRESSED_BYTES = 512;

const ENTRY = 'src/studio/main.tsx';
const FIRST_SCREEN = 'src/studio/screens/overview/overview.tsx';
const ENDPOINT_TABLE = 'src/studio/api/endpoint-table.ts';
/** An editor of its own, which few screens need. */
const JSON_FIELD = /\/ui\/json-field\//;

/** Parts that many screens import, but not most of them: one file each. */
const PARTS = {
  list: /\/virtual-core\/|\/ui\/virtual-list/,
  bulk: /\/ui\/bulk\//,
  endpoint: /\/screens\/endpoints\/|\/messages\/event-types/,
  links: /\/messages\/(?:message-status|trace-messages)|\/alerts\/object-alerts|\/ui\/lazy-details/,
  form: /\/ui\/(?:confirm-button|field|form-values|json-row|schema-form|use-form)\./,
};
/** Modules with less source text in bytes join those that almost the same screens import. */
const MIN_PART_BYTES = 3000;

/**
 * The file of the first screen is complete, so that it needs no other one. Modules that several screens import form
 * files by the screens that import them.
 */
const groups = (first) => [
  { name: 'first', priority: 3, test: (id) => first.has(id) && !id.includes('/screens/overview/') },
  ...Object.entries(PARTS).map(([name, test]) => ({ name, priority: 2, minShareCount: 2, test })),
  {
    ...{ name: 'shared', priority: 1, minShareCount: 2, test: (id) => !JSON_FIELD.test(id) },
    ...{ entriesAware: true, entriesAwareMergeThreshold: MIN_PART_BYTES },
  },
];

export async function buildStudio(root, out) {
  const folder = join(out, 'studio');
  const first = new Set();
  await build({
    root: join(root, 'src', 'studio'),
    base: '/studio/',
    configFile: false,
    logLevel: 'warn',
    plugins: [await endpointRows(root), modulesOfFirstScreen(root, first)],
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
        output: {
          codeSplitting: { groups: groups(first) },
          chunkFileNames: ({ name }) => `assets/${name.replace(/~.*/, '')}-[hash].js`,
        },
      },
    },
  });
  compress(folder);
}

/**
 * Adds method and path of the endpoints that a module names to the endpoint table. The contracts themselves contain schemas
 * and a validator, and a table of all endpoints would grow the first screen with each new one.
 */
async function endpointRows(root) {
  const contracts = await import(join(root, 'src', 'contracts', 'index.ts'));
  const folder = join(root, 'src', 'studio', sep);
  const table = join(root, ENDPOINT_TABLE);
  return {
    name: 'endpoint-rows',
    enforce: 'pre',
    transform(code, id) {
      if (!id.startsWith(folder)) return null;
      const names = new Set([...code.matchAll(/'(\w+)'/g)].map(([, name]) => name));
      const rows = [...names].filter((name) => contracts[name]?.method && contracts[name]?.path);
      if (rows.length === 0) return null;
      const added = JSON.stringify(Object.fromEntries(rows.map((name) => [name, rowOf(contracts[name])])));
      return `import { addEndpoints as $add } from ${JSON.stringify(table)}; $add(${added});${code}`;
    },
  };
}

/** Collects the modules that are loaded for the first screen. */
function modulesOfFirstScreen(root, modules) {
  return {
    name: 'modules-of-first-screen',
    buildEnd() {
      const waiting = [ENTRY, FIRST_SCREEN].map((path) => join(root, path));
      for (const id of waiting) {
        if (modules.has(id)) continue;
        modules.add(id);
        waiting.push(...(this.getModuleInfo(id)?.importedIds ?? []));
      }
    },
  };
}

/** Method, path, and the query parameter that restricts a list to one namespace. */
function rowOf({ method, path, query }) {
  const parameters = Object.keys((method === 'GET' && query?.shape) || {});
  const namespace = parameters.find((name) => name === 'namespaceId' || name === 'tenantId');
  return namespace ? [method, path, namespace] : [method, path];
}

/**
 * Replaces files by their compressed form, because the package would otherwise contain each file twice. Licence notices stay
 * readable.
 */
function compress(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    const path = join(folder, name);
    if (!statSync(path).isFile() || name.endsWith('.md')) continue;
    const plain = readFileSync(path);
    if (plain.length < MIN_COMPRESSED_BYTES) continue;
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    const compressed = brotliCompressSync(plain, { params });
    if (compressed.length >= plain.length) continue;
    writeFileSync(`${path}.br`, compressed);
    rmSync(path);
  }
}
