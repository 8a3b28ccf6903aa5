/** Marks it in plugins that bring a copy of the SDK of their own. */
const BRAND = Symbol.for('svc.CancelledError');

/**
 * A workflow's function is told by it that its run is being ended: the `await` of the step that it stands at, or comes to
 * next, rejects with it. Steps that follow are the clean-up. @spec docs/workflows.md "Cancelling and clean-up"
 */
export class CancelledError extends Error {
  readonly code = 'CANCELLED';
  /** Why: somebody cancelled the run, or its time is up. */
  readonly reason: 'cancelled' | 'timed_out';
  /** The step at which the function was told. */
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
