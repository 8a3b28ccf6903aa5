/** Identifies a `CancelledError` even if a plugin bundles a separate copy of the SDK. */
const BRAND = Symbol.for('svc.CancelledError');

/**
 * Error that rejects the current or next step of a workflow function when its run is cancelled or times out. Steps that
 * start later are clean-up steps. @spec docs/workflows.md "Cancelling and clean-up"
 */
export class CancelledError extends Error {
  readonly code = 'CANCELLED';
  readonly reason: 'cancelled' | 'timed_out';
  /** Id of the step whose `await` was rejected. */
  readonly step: string;
  readonly details: Record<string, unknown>;

  constructor(message: string, { reason, step }: Pick<CancelledError, 'reason' | 'step'>) {
    super(message);
    this.name = 'CancelledError';
    this.reason = reason;
    this.step = step;
    this.details = { reason, step };
    Object.defineProperty(this, BRAND, { value: true });
  }

  static override [Symbol.hasInstance](thrown: unknown): boolean {
    return typeof thrown === 'object' && thrown !== null && BRAND in thrown;
  }
}
