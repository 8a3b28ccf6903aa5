/**
 * `npm run crash-test [-- rounds]`: crashes a platform in every scenario and prints recovery times. Exits with 1 if a
 * recovery failed. A short version is part of the tests.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { createCrashPlatform } from '../bench/support/crash-platform.ts';
import { CRASH_SCENARIOS, type CrashScenario } from '../bench/support/crash-scenarios.ts';
import { median } from '../bench/support/result.ts';
import { upgradeRun } from '../bench/support/upgrade-run.ts';
import { messageOf } from '../src/kit/errors/errors.ts';
import { packageRoot } from '../src/kit/files/paths.ts';

const UPGRADES = 5;
const rounds = Number(process.argv[2] ?? 20);

// The launcher builds if needed.
execFileSync(join(packageRoot, 'bin', 'svc'), ['--version'], { stdio: ['ignore', 'ignore', 'inherit'] });
let failures = 0;
console.log(`${'what'.padEnd(52)} rounds  median     max`);
for (const scenario of CRASH_SCENARIOS) report(scenario.name, await strikes(scenario));
const upgrades: number[] = [];
for (let round = 0; round < Math.min(rounds, UPGRADES); round++) {
  const { accepted, lost, sentAgain, upgraded, restartMs } = await upgradeRun();
  upgrades.push(restartMs);
  const holds = lost === 0 && upgraded.length === 5;
  if (!holds) failures++;
  console.log(
    `  upgrade ${round + 1}: ${accepted} accepted, ${lost} lost, ${sentAgain} sent again, new: ${upgraded.join(' ')}`,
  );
}
report('upgrade in place under deliveries (svc restart)', upgrades);
process.exitCode = failures > 0 ? 1 : 0;

async function strikes(scenario: CrashScenario): Promise<number[]> {
  const platform = await createCrashPlatform(packageRoot);
  const times: number[] = [];
  try {
    await platform.svc('up', '-d');
    await platform.untilHealthy();
    for (let round = 0; round < Math.min(rounds, scenario.maxRounds ?? rounds); round++)
      times.push(await scenario.strike(platform));
  } catch (error) {
    failures++;
    console.error(`${scenario.name}: ${messageOf(error)}`);
  } finally {
    await platform.dispose();
  }
  return times;
}

function report(name: string, times: readonly number[]): void {
  const figures =
    times.length === 0
      ? ['-', '-']
      : [median([...times]), Math.max(...times)].map((ms) => `${Math.round(ms)} ms`);
  console.log(
    `${name.padEnd(52)} ${String(times.length).padStart(6)} ${figures.map((text) => text!.padStart(8)).join(' ')}`,
  );
}
