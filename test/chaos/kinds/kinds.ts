import type { Signal } from '../../daemons/workflow/support/retrying-client.ts';
import { below, type Random } from '../../support/random.ts';

/** What is started, and what it comes to by docs/workflows.md. */
export interface Kind {
  workflowId: string;
  input: Input;
  /** Sent in one burst. */
  signals: Signal[];
  /** Its start may be planned for later. */
  mayBePlanned: boolean;
  /** Newer runs of its concurrency key cancel it. */
  isSuperseded: boolean;
  /** What it comes to when nothing cancels it. */
  end: { status: 'succeeded' | 'failed'; output: unknown; effects: string[]; descendants: number };
  /** Its effects come one after the other. */
  isSequential: boolean;
  /** What is wrong with the effects of a cancelled one. */
  faultsOfCancelled(had: readonly string[], jobs: ReadonlyMap<string, string>): string[];
}

interface Input {
  napMs: number;
  fails: boolean;
  lane: number;
  count: number;
}

type Made = Omit<Kind, 'input' | 'end' | keyof typeof USUAL> & {
  end: Partial<Kind['end']> & { effects: string[] };
} & Partial<typeof USUAL>;

const LANES = 3;
const BURST = 6;
const USUAL = {
  signals: [] as Signal[],
  mayBePlanned: true,
  isSuperseded: false,
  isSequential: true,
};

/** Steps one after the other, of which a cancel leaves the first. */
function straight(workflowId: string, effects: string[], more: Partial<typeof USUAL> = {}): Made {
  const isOf = (had: readonly string[]) => effects.slice(0, had.length).join() === had.join();
  const faultsOfCancelled: Kind['faultsOfCancelled'] = (had) =>
    isOf(had) ? [] : [`had ${had} instead of the first of ${effects}`];
  return { workflowId, end: { effects }, faultsOfCancelled, ...more };
}

const undoOf = (name: string): string => `undo-${name}`;

function isUndone(had: readonly string[]): string[] {
  const left = had.filter((name) => !name.startsWith(undoOf('')) && !had.includes(undoOf(name)));
  return left.length === 0 ? [] : [`has not undone ${left}`];
}

function saga({ fails }: Input): Made {
  const acts = ['reserve', 'charge'];
  return {
    workflowId: 'saga',
    signals: [{ name: 'go' }, { name: 'settle' }],
    end: fails
      ? { output: { end: 'undone' }, effects: [...acts, ...acts.toReversed().map(undoOf)], descendants: 1 }
      : { effects: [...acts, 'ship'] },
    faultsOfCancelled: isUndone,
  };
}

function parallel({ fails }: Input): Made {
  const acts = ['hotel', 'flight', 'car'];
  return {
    workflowId: 'parallel',
    signals: [{ name: 'settle' }],
    isSequential: false,
    end: fails
      ? { output: { end: 'undone' }, effects: [...acts, ...acts.map(undoOf)], descendants: 3 }
      : { effects: acts, descendants: 2 },
    faultsOfCancelled: isUndone,
  };
}

/** What `always()`, `cancelled()` and `failure()` hold for. */
function deploy({ fails }: Input): Made {
  return {
    workflowId: 'deploy',
    signals: [{ name: 'go' }, { name: 'ack' }],
    end: fails
      ? { status: 'failed', output: null, effects: ['lock', 'restore', 'unlock', 'report'], descendants: 1 }
      : { effects: ['lock', 'ship', 'unlock', 'report'], descendants: 1 },
    faultsOfCancelled(had, jobs) {
      if (!had.includes('lock')) return [];
      const due = ['unlock', 'report'];
      if (!had.includes('ship')) due.push('restore');
      if (jobs.get('main') === 'cancelled') due.push('alarm');
      const missing = due.filter((name) => !had.includes(name));
      return missing.length === 0 ? [] : [`had ${had}, and not ${missing}`];
    },
  };
}

function gather({ count }: Input): Made {
  const payloads = Array.from({ length: count }, (_, item) => item);
  const items = payloads.map((payload) => ({ name: 'item', payload, idempotencyKey: `item-${payload}` }));
  return {
    workflowId: 'gather',
    // The first of them twice, under one key.
    signals: [...items, ...items.slice(0, 1)],
    isSequential: false,
    end: { output: { got: payloads }, effects: payloads.map((item) => `item-${item}`) },
    faultsOfCancelled: () => [],
  };
}

function latest(): Made {
  return {
    workflowId: 'latest',
    mayBePlanned: false,
    isSuperseded: true,
    end: { effects: ['enter', 'leave', 'closed'] },
    faultsOfCancelled: (had) =>
      had.length === 0 || had.includes('closed') ? [] : [`had ${had}, and not closed`],
  };
}

const KINDS: ReadonlyArray<(input: Input) => Made> = [
  () => straight('order', ['pay', 'pack', 'mail'], { signals: [{ name: 'go' }] }),
  () => {
    const family = straight('family', ['after']);
    return { ...family, end: { ...family.end, descendants: 6 } };
  },
  saga,
  deploy,
  parallel,
  gather,
  () => straight('flaky', ['after']),
  () => straight('lane', ['enter', 'leave'], { mayBePlanned: false }),
  latest,
];

export function kindOf(place: number, random: Random): Kind {
  const input = {
    napMs: below(random, 1500),
    fails: random() < 0.3,
    lane: below(random, LANES),
    count: 1 + below(random, BURST),
  };
  const made = KINDS[place % KINDS.length]!(input);
  const end = { status: 'succeeded' as const, output: { end: 'done' }, descendants: 0, ...made.end };
  return { ...USUAL, ...made, input, end };
}
