import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

const SHOWN = 10;

/** Prints the slowest test files after a run. */
export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const slowest = modules
      .map((module) => ({ file: relative('.', module.moduleId), ms: module.diagnostic().duration }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, SHOWN);
    if (modules.length <= SHOWN) return;
    console.info('\nSlowest files:');
    for (const { file, ms } of slowest) console.info(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`);
  }
}
