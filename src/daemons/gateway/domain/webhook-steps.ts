/** The steps of a delivery, in the spec's order; `body` is the reading of it. */
export type StepName =
  | 'route'
  | 'namespace'
  | 'rate_limit'
  | 'body'
  | 'challenge'
  | 'idempotency'
  | 'authentication'
  | 'dispatch';

export interface StepLog {
  /** Notes how a step ended; it began where the one before ended. */
  mark(step: StepName, outcome: string): void;
  /** `route=ok@0.02;namespace=ok@0.11`: what the record keeps. */
  text(): string;
}

export interface StepOutcome {
  step: string;
  outcome: string;
  durationMs: number;
}

/** Text that grows instead of objects that are turned into JSON: this runs for every delivery. */
export function createStepLog(): StepLog {
  let text = '';
  let endedAt = performance.now();
  return {
    mark(step, outcome) {
      const now = performance.now();
      const ms = Math.round((now - endedAt) * 1000) / 1000;
      text += text === '' ? `${step}=${outcome}@${ms}` : `;${step}=${outcome}@${ms}`;
      endedAt = now;
    },
    text: () => text,
  };
}

export function parseSteps(text: string): StepOutcome[] {
  if (text === '') return [];
  return text.split(';').map((part) => {
    const [step = '', rest = ''] = part.split('=');
    const [outcome = '', ms] = rest.split('@');
    return { step, outcome, durationMs: Number(ms ?? 0) };
  });
}
