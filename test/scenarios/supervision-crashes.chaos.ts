import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createCrashPlatform } from '../../bench/support/crash-platform.ts';
import { CRASH_SCENARIOS } from '../../bench/support/crash-scenarios.ts';
import { upgradeRun } from '../../bench/support/upgrade-run.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';

/** `npm run crash-test` in short: every way once. */

beforeAll(() => {
  // The launcher builds what is not current; the build is what is killed.
  execFileSync(join(packageRoot, 'bin', 'svc'), ['--version'], { stdio: 'ignore' });
}, 120_000);

test('through every kind of crash one healthy platform comes back, and nothing of the former is left', async () => {
  const platform = await createCrashPlatform(packageRoot);
  onTestFinished(() => platform.dispose());
  await platform.svc('up', '-d');
  await platform.untilHealthy();
  for (const scenario of CRASH_SCENARIOS) {
    const tookMs = await scenario.strike(platform);
    expect({ name: scenario.name, cameBack: tookMs > 0 }).toEqual({ name: scenario.name, cameBack: true });
  }
}, 180_000);

test('svc restart takes up a new build, and loses nothing that was accepted meanwhile', async () => {
  const report = await upgradeRun();
  expect(report).toMatchObject({
    lost: 0,
    upgraded: ['gateway', 'marketplace', 'rest', 'state', 'workflow'],
  });
  expect(report.accepted).toBeGreaterThan(50);
}, 180_000);
