// Import rules, which `npm run lint` checks. docs/architecture.md explains the folders.

/** Paths of `src` that each folder may import, beside itself. */
const FOLDERS = {
  contracts: [],
  sdk: ['contracts'],
  kit: ['contracts'],
  store: ['contracts', 'kit'],
  http: ['contracts', 'kit'],
  // The runner hands handlers the context whose types the SDK declares.
  plugins: ['contracts', 'kit', 'store/ports', 'sdk'],
  webhooks: ['contracts', 'kit'],
  agent: ['contracts', 'kit', 'http', 'plugins'],
  daemons: ['contracts', 'kit', 'store', 'http', 'plugins', 'webhooks'],
  testing: ['contracts', 'sdk', 'kit', 'store', 'http', 'plugins', 'webhooks', 'agent', 'daemons'],
  // It knows the processes of the services, not their code.
  supervisor: [
    ...['contracts', 'kit', 'http', 'plugins/index.ts'],
    ...['store/sqlite/lock-owner.ts', 'store/sqlite/owner-lock.ts'],
    ...['store/telemetry/writer.ts', 'store/open-postgres.ts', 'daemons/process-protocol.ts'],
    ...['daemons/node-flags.ts'],
  ],
  studio: ['contracts'],
  cli: [
    ...['contracts', 'sdk', 'kit', 'store', 'http', 'plugins', 'webhooks', 'agent', 'daemons'],
    ...['supervisor', 'testing'],
  ],
};

const SERVICES = ['gateway', 'marketplace', 'rest', 'state', 'workflow'];

const folderRules = Object.entries(FOLDERS).map(([folder, allowed]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import ${allowed.join(', ') || 'no other folder'}`,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: { path: '^src/', pathNot: `^src/(?:${[folder, ...allowed].join('|')})(?:/|$)` },
}));

const serviceRules = SERVICES.map((name) => ({
  name: `${name}-imports`,
  comment: 'services talk to each other over HTTP',
  severity: 'error',
  from: { path: `^src/daemons/${name}/` },
  to: { path: `^src/daemons/(?:${SERVICES.filter((other) => other !== name).join('|')})/` },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'type imports included',
      severity: 'error',
      from: { path: '^(?:src|bench|scripts|test)/' },
      to: { circular: true },
    },
    ...folderRules,
    {
      name: 'known-folders',
      comment: 'a new folder of src needs a row in FOLDERS',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/(?:${Object.keys(FOLDERS).join('|')})/` },
      to: {},
    },
    {
      name: 'only-src',
      comment: 'src imports nothing from tests, scripts and benchmarks',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(?!src/|node_modules/|package\\.json$|virtual:)', dependencyTypesNot: ['core'] },
    },
    {
      name: 'contracts-and-sdk-packages',
      comment: 'plugins and clients import them, so zod is their only package',
      severity: 'error',
      from: { path: '^src/(?:contracts|sdk)/' },
      to: { pathNot: '^(?:src|node_modules/zod)/' },
    },
    ...serviceRules,
    {
      name: 'shared-code-of-services',
      comment: 'only start-by-name.ts imports all services',
      severity: 'error',
      from: {
        path: '^src/daemons/',
        pathNot: `^src/daemons/(?:(?:${SERVICES.join('|')})/|start-by-name\\.ts$)`,
      },
      to: { path: `^src/daemons/(?:${SERVICES.join('|')})/` },
    },
    {
      name: 'domain-without-routes',
      comment: 'routes import the domain, not the reverse',
      severity: 'error',
      from: { path: '^src/daemons/([^/]+)/domain/' },
      to: { path: '^src/daemons/$1/routes/' },
    },
    {
      name: 'domain-without-drivers',
      comment: 'domain files import store ports, neither SQL nor Fastify',
      severity: 'error',
      from: { path: '^src/daemons/[^/]+/domain/' },
      to: { path: '^(?:src/store/(?!ports/)|node_modules/(?:fastify|@fastify|better-sqlite3)/)' },
    },
    {
      name: 'no-folder-cycles-in-the-workflow-domain',
      comment: 'the folders of the workflow domain import each other in one direction',
      severity: 'error',
      scope: 'folder',
      from: { path: '^src/daemons/workflow/domain/' },
      to: { circular: true },
    },
  ],
  options: {
    // TypeScript 7 has no parser that JavaScript can call.
    parser: 'swc',
    doNotFollow: { path: '^node_modules/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types'] },
  },
};
