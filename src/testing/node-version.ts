import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformError } from '../kit/errors.ts';
import { packageRoot } from '../kit/paths.ts';

/**
 * Rejects a Node that the platform does not run on. Without the check the process would end by SIGSEGV: the SQLite binding
 * uses functions of Node that older versions do not have. Throws SANDBOX_ERROR.
 */
export function requireSupportedNode(actual: string = process.versions.node): void {
  const { engines } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
  const needed = String(engines.node).replace(/^\D+/, '');
  if (isAtLeast(actual, needed)) return;
  throw new PlatformError(
    'SANDBOX_ERROR',
    `The test host needs Node ${needed} or newer; this is ${actual} (${process.execPath}). Run the tests with \`npm test\` or \`svc plugins test\`, which choose a fitting Node, or install a newer one from https://nodejs.org.`,
    { details: { needed, actual } },
  );
}

function isAtLeast(actual: string, needed: string): boolean {
  const [have, want] = [actual, needed].map((version) => version.split('.').map(Number));
  for (const [index, part] of want!.entries()) if (have![index] !== part) return (have![index] ?? 0) > part;
  return true;
}
