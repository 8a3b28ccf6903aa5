import { type Metrics, type MetricsSnapshot, sumMetrics } from '../../kit/telemetry/metrics.ts';
import type { Member, PrimaryProcess, ProcessGroup, SiblingProcess } from './process-group.ts';

/** Makes `/metrics` of any process report all processes. @spec Metrics; docs/decisions/0037 */
export function shareMetrics(group: ProcessGroup, metrics: Metrics): void {
  if (group.role === 'primary') gather(group, metrics);
  else if (group.role === 'sibling') passOn(group, metrics);
}

function passOn(group: SiblingProcess, metrics: Metrics): void {
  group.answer('metrics.snapshot', () => metrics.snapshot());
  metrics.renderBy(async () => (await group.primary.call('metrics.text')) as string);
}

function gather(group: PrimaryProcess, metrics: Metrics): void {
  /** The latest metrics snapshot of each process. */
  const told = new Map<Member, MetricsSnapshot>();
  /** Counters of ended processes are kept, because a decreasing sum would look like a restart of the service. */
  let former: Promise<MetricsSnapshot> = Promise.resolve([]);

  async function snapshotOf(member: Member): Promise<MetricsSnapshot> {
    try {
      const snapshot = (await member.call('metrics.snapshot')) as MetricsSnapshot;
      if (group.members().includes(member)) told.set(member, snapshot);
      return snapshot;
    } catch {
      // The process is starting or has just ended, so its last snapshot is used.
      return told.get(member) ?? [];
    }
  }

  group.onLost((member) => {
    const last = told.get(member);
    told.delete(member);
    if (last) former = former.then((sum) => addUp(sum, last));
  });
  metrics.renderBy(async () => {
    const members = await Promise.all(group.members().map(snapshotOf));
    return sumMetrics([await metrics.snapshot(), ...members, await former]).render();
  });
  group.answer('metrics.text', () => metrics.render());
}

/**
 * Adds the last snapshot of an ended process to the sum over previously ended processes. Gauges are left out, because a
 * gauge describes the current state of a process.
 */
function addUp(former: MetricsSnapshot, last: MetricsSnapshot): Promise<MetricsSnapshot> {
  return sumMetrics([former, last.filter(({ type }) => String(type) !== 'gauge')]).snapshot();
}
