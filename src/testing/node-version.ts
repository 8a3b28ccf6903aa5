import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformError } from '../kit/errors/errors.ts';
import { packageRoot } from '../kit/files/paths.ts';

/** Throws SANDBOX_ERROR for unsupported versions of Node, because the SQLite binding would crash the process. */
export function requireSupportedNode(actual: string = process.versions.node): void {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
  const required = String(engines.node).replace(/^\D+/, '');
  if (isAtLeast(actual, required)) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `The test host needs Node ${required} or newer; this is ${actual} (${process.execPath}). Run the tests with \`npm test\` or \`svc plugins test\`, which use a suitable Node, or install one from https://nodejs.org.`,
    { details: { needed: required, actual } },
  );
}

function isAtLeast(actual: string, needed: string): boolean {
  const [have, want] = [actual, needed].map((version) => version.split('.').map(Number));
  for (const [index, part] of want!.entries()) if (have![index] !== part) return (have![index] ?? 0) > part;
  return true;
}
