import { isDeepStrictEqual } from 'node:util';
import type { CompiledWorkflow } from '../../../../src/daemons/workflow/domain/definition/compiled-workflow.ts';
import type { Effect } from '../../../../src/daemons/workflow/domain/run/effects.ts';
import type { AttemptOutcome, RunEvent } from '../../../../src/daemons/workflow/domain/run/events.ts';
import type { Failure } from '../../../../src/daemons/workflow/domain/run/failure.ts';
import { Program } from '../../../../src/daemons/workflow/domain/run/program.ts';
import { newRunState, type RunState } from '../../../../src/daemons/workflow/domain/run/state.ts';
import type { Transition, Write } from '../../../../src/daemons/workflow/domain/run/writes.ts';
import { type Actor, type Entity, mayMove } from '../../../../src/daemons/workflow/domain/states.ts';
import { transition } from '../../../../src/daemons/workflow/domain/transition/transition.ts';
import type { RunRecord } from '../../../../src/store/ports/index.ts';
import { below, type Random } from '../../../support/random.ts';

const START = Date.UTC(2030, 0, 1);
const FINAL = new Set(['succeeded', 'failed', 'timed_out', 'cancelled']);
const FACTS = { isIdempotent: true };
const FAILED: Failure = {
  errorClass: 'network',
  error: { code: 'STEP_FAILED', message: 'no', details: {} },
  retryAfterMs: null,
};

/** Drives `transition` in place of the commit loop: effects become events in random order, at random times. */
export class SimulatedRun {
  readonly #random: Random;
  readonly #program: Program;
  readonly #statuses = new Map<string, string>();
  #state: RunState;
  #now = START;
  #entries = 0;
  #leaves = 0;
  /** Events that outstanding effects will cause. */
  #due: RunEvent[] = [];
  /** The event that follows an event of the same effect. */
  readonly #next = new Map<RunEvent, RunEvent>();
  #timers = new Map<string, { at: number; event: RunEvent }>();
  readonly #slots = new Map<string, 'held' | 'requested'>();
  readonly faults: string[] = [];

  constructor(workflow: CompiledWorkflow, random: Random) {
    this.#random = random;
    this.#program = new Program(workflow);
    this.#state = claimedState(this.#program, below(random, 4) === 0);
    this.#statuses.set('run', this.#state.run.status);
  }

  get hasLeft(): boolean {
    return this.#leaves > 0;
  }

  get hasEnded(): boolean {
    return FINAL.has(this.#state.run.status);
  }

  start(): void {
    this.#apply({ type: 'claimed' });
  }

  /** Applies one random event: the result of an effect, a timer, or a change from outside. */
  step(): void {
    const choice = below(this.#random, 20);
    if (choice === 0) this.#apply({ type: 'cancel' });
    else if (choice === 1) this.#apply({ type: 'plugins.changed' });
    else if (choice === 2) this.#apply({ type: this.#state.draining ? 'undrain' : 'drain' });
    else if (choice < 5) this.#signal();
    else if (choice < 8) this.#fireTimer();
    else this.#settleOne();
  }

  /** Ends the run: cancels it, and lets all its work settle. */
  finish(): void {
    this.#apply({ type: 'cancel' });
    for (let events = 0; !this.hasLeft && events < 500; events++) if (!this.#settleOne()) this.#fireTimer();
  }

  #settleOne(): boolean {
    const index = below(this.#random, this.#due.length);
    const [event] = this.#due.splice(index, 1);
    if (!event) return false;
    this.#now += below(this.#random, 1000);
    this.#apply(event);
    const next = this.#next.get(event);
    if (next) this.#due.push(next);
    return true;
  }

  #signal(): void {
    const entry = { n: ++this.#entries, kind: 'signal', name: 'go', payload: '1', at: this.#now } as const;
    this.#apply({ type: 'news', entry: { ...entry, takenBy: null }, endedChildren: [] });
  }

  #fireTimer(): void {
    const [name, timer] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
    if (!name || !timer) return;
    this.#timers.delete(name);
    this.#now = Math.max(this.#now, timer.at);
    this.#apply(timer.event);
  }

  #apply(event: RunEvent): void {
    if (this.hasLeft) return;
    const stamp = {
      ...{ now: this.#now, monotonic: this.#now, fraction: this.#random() },
      ...{ units: below(this.#random, 3) * 1000, slots: below(this.#random, 3) },
    };
    if (event.type === 'slot.granted') this.#slots.set(event.owner, 'held');
    if (event.type === 'attempt.settled' || event.type === 'slot.withdrawn') this.#endSlot(event.step);
    const clone = structuredClone(this.#state);
    const result = transition(this.#state, { ...event, ...stamp }, this.#program);
    const again = transition(clone, { ...event, ...stamp }, this.#program);
    this.#expectSame('writes', again.writes, result.writes);
    this.#expectSame('effects', again.effects, result.effects);
    this.#expectSame('state', clone, this.#state);
    for (const write of result.writes) this.#check(write);
    this.#take(result, stamp.slots);
    if (this.#state.isStale) this.#apply({ type: 'advance' });
  }

  #take({ effects, slots }: Transition, offered: number): void {
    if (slots.length > offered) this.faults.push(`${slots.length} slots were taken of ${offered}`);
    for (const owner of slots) this.#claimSlot(owner, 'held');
    for (const effect of effects) this.#start(effect);
  }

  #claimSlot(owner: string, how: 'held' | 'requested'): void {
    const before = this.#slots.get(owner);
    if (before) this.faults.push(`${owner} had ${before} a slot, and again ${how} one`);
    this.#slots.set(owner, how);
  }

  #endSlot(owner: string): void {
    this.#slots.delete(owner);
    this.#due = this.#due.filter((due) => due.type !== 'slot.granted' || due.owner !== owner);
  }

  #start(effect: Effect): void {
    switch (effect.type) {
      case 'leave':
        this.#leaves++;
        for (const [owner, how] of this.#slots)
          this.faults.push(`The run left while ${owner} had ${how} a slot`);
        break;
      case 'timer.set':
        this.#timers.set(effect.name, { at: this.#now + effect.ms, event: effect.event });
        break;
      case 'timer.clear':
        this.#timers.delete(effect.name);
        break;
      case 'slot.request':
        this.#claimSlot(effect.owner, 'requested');
        this.#due.push({ type: 'slot.granted', owner: effect.owner });
        break;
      case 'slot.release':
        this.#endSlot(effect.owner);
        break;
      case 'slot.withdraw':
        this.#due.push({ type: 'slot.withdrawn', step: effect.step });
        break;
      case 'attempt.start': {
        const { step, attempt } = effect.attempt;
        const outcome = 'failure' in effect.given ? effect.given : this.#outcome();
        const isExpired = below(this.#random, 5) === 0;
        const settled = { type: 'attempt.settled', step, attempt, outcome, isExpired, facts: FACTS } as const;
        const begun = { type: 'attempt.begun', step, attempt } as const;
        if (below(this.#random, 3) > 0) this.#next.set(begun, settled);
        this.#due.push(this.#next.has(begun) ? begun : settled);
        break;
      }
      case 'attempt.evaluate': {
        const { step, attempt } = effect.attempt;
        const input = { idempotencyKey: null, input: { name: 'go', ms: 10 } };
        this.#due.push({ type: 'attempt.evaluated', step, attempt, input, facts: FACTS });
        break;
      }
      case 'evaluate': {
        const answer = { value: effect.target.of.endsWith('.if') ? this.#random() < 0.7 : {} };
        this.#due.push({ type: 'evaluated', id: effect.id, answer });
        break;
      }
      case 'step.inspect': {
        const away = below(this.#random, 4) === 0 ? { ...FAILED, away: this.#away() } : null;
        this.#due.push({ type: 'step.inspected', step: effect.step, away, facts: FACTS });
        break;
      }
      case 'children.read':
        this.#due.push({ type: 'children.open', open: [], ended: effect.ended });
        break;
    }
  }

  #outcome(): AttemptOutcome {
    if (this.#random() < 0.5) return { output: null };
    const kind = below(this.#random, 4);
    if (kind === 0) return { failure: { ...FAILED, interrupted: true } };
    return { failure: kind === 1 ? { ...FAILED, away: this.#away() } : FAILED };
  }

  #away(): NonNullable<Failure['away']> {
    return { pluginId: 'p', pauseMs: 5000, isMissing: below(this.#random, 2) === 0 };
  }

  /** Compares each status with the one written before. A write may skip states that lasted no time. */
  #check(write: Write): void {
    if (write.type === 'run') this.#moved('run', 'run', write.progress.status);
    if (write.type === 'job') this.#moved('job', `job ${write.record.key}`, write.record.status);
    if (write.type === 'step') this.#moved('step', `step ${write.key}`, write.record.status);
  }

  #moved(entity: Entity, key: string, to: string): void {
    const from = this.#statuses.get(key) ?? 'pending';
    this.#statuses.set(key, to);
    if (from !== to && !canReach(entity, from, to))
      this.faults.push(`${key} went from ${from} to ${to}, which the table of states does not allow`);
  }

  #expectSame(what: string, one: unknown, other: unknown): void {
    if (!isDeepStrictEqual(one, other)) this.faults.push(`A structured clone came to other ${what}`);
  }
}

function canReach(entity: Entity, from: string, to: string, seen = new Set<string>()): boolean {
  const actors: Actor[] = ['engine', 'caller'];
  const states = [
    'queued',
    'pending',
    'running',
    'waiting',
    'interrupted',
    'cancelling',
    'skipped',
    ...FINAL,
  ];
  for (const next of states) {
    if (seen.has(next) || !actors.some((by) => mayMove(entity, from, next, by))) continue;
    seen.add(next);
    if (next === to || (!FINAL.has(next) && canReach(entity, next, to, seen))) return true;
  }
  return false;
}

/** The state of a run that has just been claimed for the first time. */
export function claimedState(program: Program, isFromBefore = false): RunState {
  return newRunState({
    loaded: { run: queuedRun(program.workflow), jobs: [], steps: [], inbox: [] },
    ...{ program, fence: 1, isFromBefore, deadlines: new Map() },
    limits: { maxOutputChars: 1000, cleanUpMs: 60_000, maxPluginWaitMs: 600_000 },
  });
}

function queuedRun({ definition, hash }: CompiledWorkflow): RunRecord {
  return {
    ...{ seq: 1, id: 'run_1', kind: 'workflow', tenantId: 'default', workflowId: definition.id },
    ...{ definitionHash: hash, priority: 0, runAt: null, concurrencyKey: null, concurrencyLimit: null },
    ...{ trigger: 'manual', parentId: null, parentStep: null, rerunOf: null, depth: 0, hostId: 'h' },
    ...{
      requestId: 'r',
      traceId: 't',
      deliveryId: null,
      parentSpanId: null,
      labels: null,
      endTasks: null,
      pauseScope: null,
      handles: null,
      handlerDepth: 0,
      input: '{}',
      createdAt: START,
    },
    ...{ status: 'queued', ready: true, reason: 'capacity', rank: 0, wakeAt: null, deadlineAt: null },
    ...{ fence: null, resumeCount: 0, crashes: 0, kills: 0, inFlight: false, ending: null, endingAt: null },
    ...{ endingHeldAt: null, output: null, error: null, startedAt: null, finishedAt: null },
  };
}
