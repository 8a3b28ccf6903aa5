import { basename } from 'node:path';
import {
  type FoundCrashLoop,
  readCrashLoops,
  removeCrashLoop,
} from '../../../../kit/files/crash-loop-files.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import type { AlertStore, NewAlertFact } from '../../../../store/ports/index.ts';
import type { Condition } from './conditions.ts';
import type { Evaluator } from './evaluator.ts';
import type { RuleBook } from './rule-book.ts';
import type { Sender } from './sender.ts';

export interface AlertLoopDeps {
  store: AlertStore;
  book: RuleBook;
  evaluator: Evaluator;
  sender: Sender;
  conditions: readonly Condition[];
  dataDir: string;
  /** Whether this process reads what belongs to its node. */
  isFirstOfNode: boolean;
  /** Whether this gateway evaluates the rules of all nodes. */
  isLeader(): Promise<boolean>;
  intervalMs: number;
  clock: Clock;
  logger: Logger;
}

const PRUNE_EVERY_MS = minutes(1);

/** Evaluates the rules at intervals. A failing part does not keep the others from running. @spec docs/decisions/0258 */
export class AlertLoop {
  readonly #deps: AlertLoopDeps;
  /** Time of the next measurement, by condition and rule. */
  readonly #nextAt = new Map<string, number>();
  /** Parts that failed at the last attempt, so that a lasting failure is reported once. */
  readonly #failing = new Set<string>();
  #cancel: () => void = () => {};
  #ticking: Promise<void> | undefined;
  #isClosed = false;
  /** Revision of the settings that were applied to the alerts. Calls of the API refresh the rule book too. */
  #applied = -1;

  constructor(deps: AlertLoopDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { clock, intervalMs } = this.#deps;
    this.#cancel = clock.after(intervalMs, () => {
      this.#ticking = this.tick().finally(() => {
        if (!this.#isClosed) this.start();
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#ticking;
    await this.#deps.sender.close();
  }

  /** Runs one evaluation. Never rejects. */
  async tick(): Promise<void> {
    const { book, evaluator, sender, isLeader, isFirstOfNode } = this.#deps;
    if (isFirstOfNode) await this.#part('crash loops', () => this.#readCrashLoops());
    let leads = false;
    await this.#part('rules', async () => {
      leads = await isLeader();
      await book.refresh();
    });
    if (isFirstOfNode || leads) await this.#measure(leads);
    if (!leads || this.#isClosed) return;
    await this.#part('silences', async () => {
      const { revision } = book;
      await evaluator.applySettings(revision !== this.#applied);
      this.#applied = revision;
    });
    await this.#part('facts', () => evaluator.handleFacts());
    await this.#part('facts of runs', () => evaluator.handleRunFacts());
    if (this.#isDue('prune', PRUNE_EVERY_MS)) await this.#part('retention', () => evaluator.prune());
    await this.#part('groups', () => evaluator.flush());
    await this.#part('notifications', () => sender.start());
  }

  /** The name of a file is the key of its fact, so that a crash before the file is deleted does not add the fact twice. */
  async #readCrashLoops(): Promise<void> {
    const { store, clock, dataDir } = this.#deps;
    for (const found of await readCrashLoops(dataDir)) {
      await store.addFactOnce(`${found.node}/${basename(found.file)}`, factOf(found), clock.now());
      await removeCrashLoop(found.file);
    }
  }

  async #measure(leads: boolean): Promise<void> {
    const { conditions, book, evaluator, clock, isFirstOfNode } = this.#deps;
    for (const condition of conditions) {
      const { kind, own, everyMs } = condition;
      if (own === undefined ? !leads : !isFirstOfNode) continue;
      for (const rule of book.rules) {
        if (rule.settings.kind !== kind || !rule.settings.enabled) continue;
        if (!this.#isDue(`${kind} ${rule.namespaceId} ${rule.name}`, everyMs)) continue;
        await this.#part(kind, async () => {
          const found = await condition.find(rule, clock.now());
          if (!found) return;
          const isOwn = own === undefined ? undefined : (key: string) => key.startsWith(own);
          await evaluator.reconcile(rule, found, isOwn);
        });
      }
    }
  }

  #isDue(key: string, everyMs: number): boolean {
    const now = this.#deps.clock.monotonic();
    if ((this.#nextAt.get(key) ?? 0) > now) return false;
    this.#nextAt.set(key, now + everyMs);
    return true;
  }

  async #part(name: string, work: () => Promise<unknown>): Promise<void> {
    if (this.#isClosed) return;
    try {
      await work();
      this.#failing.delete(name);
    } catch (error) {
      if (!this.#failing.has(name))
        this.#deps.logger.warn(`Alerts: the part "${name}" failed and is tried again at each evaluation`, {
          error,
        });
      this.#failing.add(name);
    }
  }
}

function factOf({ service, node, crashes, reason, at }: FoundCrashLoop): NewAlertFact {
  const body = JSON.stringify({ service, node, crashes, reason });
  return { kind: 'service.crash_loop', namespaceId: null, objectId: `${node}/${service}`, body, at };
}
