import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { hours } from '../../kit/time/duration.ts';
import { type PlatformCallContext, permissionOf } from '../../plugins/index.ts';

/** Minimum time between two events for the same plugin, permission and tenant in one process. */
const EVERY_MS = hours(24);
/** Maximum number of remembered uses. The map is cleared when it is full. */
const MAX_REMEMBERED = 10_000;

/** Reports which permissions plugins use. Calls without the permission are not reported. */
export class PermissionUse {
  readonly #analytics: Pick<Analytics, 'track'>;
  readonly #clock: Clock;
  /** Time of the last event, on the monotonic clock. */
  readonly #reported = new Map<string, number>();

  constructor({ analytics, clock }: { analytics: Pick<Analytics, 'track'>; clock: Clock }) {
    this.#analytics = analytics;
    this.#clock = clock;
  }

  note({ request }: PlatformCallContext, service: string, args: readonly unknown[]): void {
    const { plugin, tenantId, executionId } = request;
    const permission = permissionOf(request.permissions, service, args);
    if (permission === undefined) return;
    const key = `${plugin.id}\n${tenantId}\n${permission}`;
    const now = this.#clock.monotonic();
    const last = this.#reported.get(key);
    if (last !== undefined && now - last < EVERY_MS) return;
    if (this.#reported.size >= MAX_REMEMBERED) this.#reported.clear();
    this.#reported.set(key, now);
    const payload = { pluginId: plugin.id, permission };
    this.#analytics.track('plugin.permission.used', { tenantId, runId: executionId, payload });
  }
}
