import type { Clock } from '../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { PluginWaits } from '../engine/plugin-waits.ts';
import type { StepPart } from '../run/run-parts.ts';
import type { RunRecorder } from '../run/run-recorder.ts';
import type { PluginAway } from './plugin-away.ts';

export interface PluginParkingDeps {
  run: Pick<RunRecord, 'id'>;
  clock: Clock;
  deadlines: Deadlines;
  recorder: Pick<RunRecorder, 'park'>;
  pluginWaits: Pick<PluginWaits, 'add'>;
}

/** Parks steps whose plugin is unavailable. */
export function createPluginParking(deps: PluginParkingDeps) {
  const { run, clock, deadlines, recorder, pluginWaits } = deps;

  /** Waits for the next plugin reload. A plugin that is loaded but fails to start is also retried after a pause. */
  function waitForPlugin(part: StepPart, away: PluginAway, more: { interrupted?: true }): void {
    const { pluginId, message } = away;
    part.wasAway = true;
    const pause = pluginWaits.add(pluginId, run.id, message);
    const isMissing = part.step.kind.away?.(part.step.uses) !== undefined;
    const wakeAt = isMissing ? null : deadlines.note(clock.now() + pause);
    recorder.park(part, { for: 'plugin', name: pluginId, message, ...more }, wakeAt, { plugin: pluginId });
  }

  /** Uncounts the attempt that found its plugin unavailable: its work never began. */
  function parkForPlugin(part: StepPart, away: PluginAway): void {
    const { record } = part;
    record.attempts--;
    record.attemptAt = null;
    if (record.attempts === 0) record.startedAt = null;
    waitForPlugin(part, away, {});
  }

  return { waitForPlugin, parkForPlugin };
}
