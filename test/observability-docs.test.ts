import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PLATFORM_CODES } from '../src/contracts/index.ts';
import { packageRoot } from '../src/kit/files/paths.ts';
import { SOURCE_ROOT, sourceFiles } from './support/source-files.ts';

const CODE = /'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)'/g;
const read = (file: string): string => readFileSync(join(SOURCE_ROOT, file), 'utf8');
const codesIn = (text: string): string[] => [...text.matchAll(CODE)].map(([, code]) => code!);

/** The text between two marks of a file: a type, or the calls that pass a code on. */
function part(file: string, from: string, to: string): string {
  const text = read(file);
  const start = text.indexOf(from);
  if (start === -1) throw new Error(`${file} no longer has ${from}: say where its reason codes come from.`);
  return text.slice(start, text.indexOf(to, start + from.length));
}

/** Where a reason code is no literal: what it may be. An expression that is not here fails the test. */
const COMPUTED: Record<string, () => string[]> = {
  'daemons/gateway/domain/access/require-access.ts: refusal.reasonCode': () =>
    codesIn(part('daemons/gateway/domain/access/require-access.ts', 'interface Refusal', ';')),
  'daemons/gateway/domain/identity/authenticator.ts: fault': () =>
    codesIn(part('daemons/gateway/domain/identity/bearer.ts', 'type AuthFault', ';')),
  'daemons/gateway/domain/identity/portal-links.ts: reasonCode': () =>
    codesIn(part('daemons/gateway/domain/identity/bearer.ts', 'type AuthFault', ';')),
  'daemons/gateway/domain/identity/oidc/sign-in.ts: REASON_CODES[problem]': () =>
    codesIn(part('daemons/gateway/domain/identity/oidc/sign-in.ts', 'const REASON_CODES', '};')),
  'daemons/gateway/domain/identity/signing-secrets.ts: problem.reasonCode': () =>
    codesIn(part('daemons/gateway/domain/identity/signing-secrets.ts', 'interface Problem', ';')),
  'daemons/gateway/domain/identity/token-exchange.ts: reasonCode': () =>
    [...read('daemons/gateway/domain/identity/token-exchange.ts').matchAll(/refused\(\s*'([A-Z_]+)'/g)].map(
      ([, c]) => c!,
    ),
  'daemons/gateway/routes/service-caller.ts: reasonCode': () =>
    [...read('daemons/gateway/routes/internal-dispatch.ts').matchAll(/refuse\(request, '([A-Z_]+)'/g)].map(
      ([, c]) => c!,
    ),
  'http/upstream-identity.ts: reasonCode': () =>
    [...read('http/upstream-identity.ts').matchAll(/reportRefused\(logger, request, '([A-Z_]+)'/g)].map(
      ([, c]) => c!,
    ),
  'daemons/workflow/domain/starts/schedules.ts: reasonCode': () =>
    [...read('daemons/workflow/domain/starts/schedules.ts').matchAll(/note\([^']*'([A-Z_]+)'/g)].map(
      ([, c]) => c!,
    ),
  'daemons/gateway/domain/webhooks/verify/authentication.ts: refusal.fault.toUpperCase()': () =>
    [...part('webhooks/schemes/signed-request.ts', 'type SignatureFault', ';').matchAll(/'(\w+)'/g)].map(
      ([, fault]) => fault!.toUpperCase(),
    ),
  'daemons/marketplace/domain/announce.ts: action.toUpperCase()': () =>
    [
      ...part('daemons/marketplace/domain/announce.ts', 'type MarketplaceAction', ';').matchAll(/'(\w+)'/g),
    ].map(([, action]) => action!.toUpperCase()),
  'daemons/rest/routes/plugins.ts: reasonCode': () => [
    ...codesIn(part('daemons/oauth/verifier.ts', 'type OAuthFault', ';')),
    'ROUTE_SECURITY',
  ],
  // Its codes are literals in the same file.
  'http/readiness.ts: reason.reasonCode': () => [],
  // Close codes of sockets, which the page lists as a range.
  'daemons/gateway/domain/hosts/session-reports.ts: String(code)': () => [],
  // Codes of errors, and of faults of plugins.
  'daemons/rest/domain/loaded-routes.ts: code': () => ['PLUGIN_CONFLICT'],
  // Of a PlatformError, whatever it is.
  'daemons/workflow/domain/starts/triggers.ts: code': () => ['VALIDATION_ERROR', 'CONCURRENT_LIMIT_EXCEEDED'],
  'daemons/workflow/domain/ends/handler-failures.ts: error.code': () => [
    'VALIDATION_ERROR',
    'WORKFLOW_NOT_FOUND',
  ],
  "daemons/telemetry.ts: codeOf(error) ?? 'START_FAILED'": () => ['START_FAILED'],
  "daemons/plugin-runtime/reports.ts: faults[0]?.code ?? 'INVALID_MANIFEST'": () => [
    'INVALID_MANIFEST',
    'INTEGRITY_MISMATCH',
  ],
};

/** Every reason code of the sources, with the files that use it. */
function usedCodes(): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>();
  const note = (code: string, file: string): void => {
    used.set(code, (used.get(code) ?? new Set()).add(file));
  };
  for (const file of sourceFiles(SOURCE_ROOT)) {
    if (
      file === 'kit/telemetry/logger.ts' ||
      file.startsWith('contracts/') ||
      file.startsWith('store/sqlite/telemetry') ||
      file.startsWith('store/telemetry')
    )
      continue;
    for (const [, ownLine, inline] of read(file).matchAll(
      /^ *reasonCode(?:: (.+?))?,$|[{,] reasonCode: ('[^']*')/gm,
    )) {
      const expression = ownLine ?? inline ?? 'reasonCode';
      if (expression === 'string') continue;
      const computed = COMPUTED[`${file}: ${expression}`];
      const codes = computed ? computed() : codesIn(expression);
      const isLiteral =
        codes.length > 0 && /^(?:[\w.]+ \? )?'[A-Z_0-9]+'(?: : '[A-Z_0-9]+')?$/.test(expression);
      if (!computed && !isLiteral)
        throw new Error(`${file}: the reason code ${expression} is computed; name its values in COMPUTED.`);
      for (const code of codes) note(code, file);
    }
  }
  return used;
}

test('docs/observability.md lists exactly the reason codes there are', () => {
  const page = readFileSync(join(packageRoot, 'docs/observability.md'), 'utf8');
  const listed = [...page.matchAll(/^- (`[A-Z][A-Z_]+`(?:, `[A-Z][A-Z_]+`)*): \S.*$/gm)].flatMap(
    ([, codes]) => codes!.replaceAll('`', '').split(', '),
  );
  const used = [...usedCodes().keys()].filter((code) => !Object.hasOwn(PLATFORM_CODES, code));
  expect(used.length).toBeGreaterThan(40);
  expect(listed.toSorted()).toEqual(used.toSorted());
  expect(new Set(listed).size).toBe(listed.length);
});

test('docs/observability.md lists exactly the metrics there are', () => {
  const page = readFileSync(join(packageRoot, 'docs/observability.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('- `svc_'));
  const listed = rows.flatMap((row) => [...row.split(': ')[0]!.matchAll(/svc_\w+/g)].map(([name]) => name));
  const used = sourceFiles(SOURCE_ROOT).flatMap((file) =>
    [...read(file).matchAll(/'(svc_[a-z_]+)'/g)].map(([, name]) => name!),
  );
  expect(listed.toSorted()).toEqual([...new Set(used)].toSorted());
});
