import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'rolldown/utils';
import { globSync } from 'tinyglobby';

/** The folder `src` of this repository. */
export const SOURCE_ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../src');

/** What each top folder of `src` may import from, beside itself; `store/ports` means that part alone. @spec docs/architecture.md "The folders" */
const FOLDERS: Record<string, readonly string[]> = {
  contracts: [],
  sdk: ['contracts'],
  kit: ['contracts'],
  store: ['contracts', 'kit'],
  http: ['contracts', 'kit'],
  // The runner hands handlers the context whose types the SDK declares.
  plugins: ['contracts', 'kit', 'store/ports', 'sdk'],
  agent: ['contracts', 'kit', 'http', 'plugins'],
  daemons: ['contracts', 'kit', 'store', 'http', 'plugins'],
  supervisor: [
    ...['contracts', 'kit', 'http', 'plugins', 'store/sqlite'],
    // Both ends of the channel between supervisor and service.
    ...['daemons/process-protocol.ts', 'daemons/node-flags.ts', 'daemons/define-daemon.ts'],
  ],
  studio: ['contracts', 'http/client.ts'],
  testing: ['contracts', 'sdk', 'kit', 'store', 'http', 'plugins', 'agent', 'daemons'],
  cli: [
    ...['contracts', 'sdk', 'kit', 'store', 'http', 'plugins', 'agent', 'daemons'],
    ...['supervisor', 'testing', 'studio'],
  ],
};

/** Packages a folder may import; folders not named here may import any. */
const PACKAGES: Record<string, readonly string[]> = { contracts: ['zod'], sdk: ['zod'] };

/** Packages that a domain file must read without. */
const NOT_IN_DOMAIN = ['fastify', 'better-sqlite3'];

/** The one file that names every daemon. */
const DAEMON_REGISTRY = 'daemons/start-by-name.ts';

export interface ImportFault {
  file: string;
  specifier: string;
  reason: string;
}

/** Every module a TypeScript source names: imports, re-exports, `import()` and `import('…')` types. */
export function specifiersOf(file: string, source: string): string[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]!.message}`);
  const found: string[] = [];
  visit(program, (node) => {
    if (NAMES_A_MODULE.has(node.type as string)) {
      const target = node.source ?? node.expression;
      const value = (target as { value?: unknown } | null | undefined)?.value;
      if (typeof value === 'string') found.push(value);
    }
  });
  return found;
}

const NAMES_A_MODULE = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
  'TSExternalModuleReference',
]);

function visit(value: unknown, see: (node: Record<string, unknown>) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, see);
  else if (typeof value === 'object' && value !== null) {
    if ('type' in value) see(value as Record<string, unknown>);
    for (const item of Object.values(value)) visit(item, see);
  }
}

/** Why `file` (relative to `src`, `/`-separated) may not import `specifier`; undefined when it may. */
export function forbidden(file: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return forbiddenPackage(file, specifier);
  const target = posix.normalize(posix.join(posix.dirname(file), specifier));
  if (target.startsWith('..')) return target === '../package.json' ? undefined : 'it lies outside src';
  const [from] = file.split('/') as [string];
  const [to] = target.split('/') as [string];
  const allowed = FOLDERS[from];
  if (!allowed) return `the folder "${from}" has no rule: add it to FOLDERS`;
  if (from !== to && !allowed.some((path) => target === path || target.startsWith(`${path}/`))) {
    return `${from} may import ${allowed.join(', ') || 'nothing'} only`;
  }
  return from === 'daemons' ? forbiddenInDaemon(file, target) : undefined;
}

function forbiddenPackage(file: string, specifier: string): string | undefined {
  const [from] = file.split('/') as [string];
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  const allowed = PACKAGES[from];
  if (allowed && !allowed.includes(name)) return `${from} may import the packages ${allowed.join(', ')} only`;
  if (isDomain(file) && (NOT_IN_DOMAIN.includes(name) || name.startsWith('@fastify'))) {
    return `domain files read without ${NOT_IN_DOMAIN.join(' and ')}`;
  }
  return undefined;
}

/** Inside `daemons/<name>/`: routes -> domain -> ports, and no daemon knows another. */
function forbiddenInDaemon(file: string, target: string): string | undefined {
  const daemon = daemonOf(file);
  const other = daemonOf(target);
  if (file === DAEMON_REGISTRY) return undefined;
  if (!daemon && other) return `what daemons share knows none of them; only ${DAEMON_REGISTRY} does`;
  if (daemon && other && daemon !== other) return 'daemons talk to each other over HTTP';
  if (!isDomain(file)) return undefined;
  if (target.startsWith(`daemons/${daemon}/routes/`)) return 'routes import domain, not the reverse';
  if (target.startsWith('store/') && !target.startsWith('store/ports/'))
    return 'domain knows ports, not drivers';
  return undefined;
}

/** Folders of `daemons` that are no daemon. */
const SHARED_BY_DAEMONS = ['group', 'oauth', 'plugin-routes', 'plugin-runtime'];

/** `daemons/rest/domain/x.ts` -> `rest`; a file directly in `daemons` belongs to none. */
function daemonOf(path: string): string | undefined {
  const [top, name = '', ...rest] = path.split('/');
  return top === 'daemons' && rest.length > 0 && !SHARED_BY_DAEMONS.includes(name) ? name : undefined;
}

function isDomain(file: string): boolean {
  return /^daemons\/[^/]+\/domain\//.test(file);
}

/** Each import under `root` that breaks a rule. */
export function importFaults(root: string): ImportFault[] {
  return sourceFiles(root).flatMap((file) =>
    specifiersOf(file, readFileSync(join(root, file), 'utf8')).flatMap((specifier) => {
      const reason = forbidden(file, specifier);
      return reason ? [{ file, specifier, reason }] : [];
    }),
  );
}

/** Every source file under `root`, relative and `/`-separated. */
export function sourceFiles(root: string): string[] {
  return globSync('**/*.{ts,tsx,js,mjs}', { cwd: root }).sort();
}
