import { X509Certificate } from 'node:crypto';
import { readFile, statfs } from 'node:fs/promises';
import { connect } from 'node:tls';
import { ALL_NAMESPACES, type AlertThreshold } from '../../../../contracts/index.ts';
import { messageOf } from '../../../../kit/errors/errors.ts';
import { formatDuration, hours, minutes, seconds } from '../../../../kit/time/duration.ts';
import type { QueueStore, WaitingApproval } from '../../../../store/ports/index.ts';
import { labelsOf, type Occurrence } from './occurrence.ts';
import type { Rule } from './rule-book.ts';

const DAY_MS = hours(24);
const DEFAULT_WAITING_MS = hours(1);
const DEFAULT_DEPTH = 1000;
const DEFAULT_FREE_PERCENT = 10;
const DEFAULT_EXPIRES_DAYS = 14;
const MAX_FOUND = 1000;
const TLS_TIMEOUT_MS = seconds(10);

/** A condition that is measured at intervals. */
export interface Condition {
  kind: Rule['settings']['kind'];
  everyMs: number;
  /** Prefix of the objects that this node measures. Undefined: the leading gateway measures all objects. */
  own?: string;
  /** Returns the objects for which the condition holds, or undefined if it cannot be measured now. */
  find(rule: Rule, now: number): Promise<Occurrence[] | undefined>;
}

/** Returns the only namespace whose objects the rule observes, or undefined for all. */
const onlyOf = ({ namespaceId }: Rule): string | undefined =>
  namespaceId === ALL_NAMESPACES ? undefined : namespaceId;

const base = (now: number) => ({ at: now, fact: null, origins: [] });
const days = (ms: number): string => `${Math.max(0, Math.floor(ms / DAY_MS))} days`;

export function queueDepth(queues: Pick<QueueStore, 'counts'>, backlog: () => number): Condition {
  return {
    kind: 'queue.depth',
    everyMs: seconds(15),
    async find(rule, now) {
      const { threshold } = rule.settings;
      const found: Occurrence[] = [];
      const add = (
        queue: string,
        namespaceId: string | null,
        waiting: number,
        oldestAgeMs: number | null,
      ) => {
        const reason = tooDeep(threshold, waiting, oldestAgeMs);
        if (reason === undefined) return;
        const id = namespaceId === null ? queue : `${namespaceId}/${queue}`;
        found.push({
          ...{ kind: 'queue.depth', ...base(now) },
          object: { type: 'queue', id, namespaceId, labels: labelsOf({ queue }, namespaceId) },
          title: namespaceId === null ? 'Deliveries pile up' : `The queue ${queue} is too long`,
          message: reason,
          path: namespaceId === null ? '/studio/deliveries' : `/studio/queues/${encodeURIComponent(queue)}`,
        });
      };
      add(DELIVERIES_QUEUE, null, backlog(), null);
      for (const { namespaceId: of, queue, waiting, oldestReceivedAt } of await queues.counts(onlyOf(rule)))
        add(queue, of, waiting, oldestReceivedAt === null ? null : now - oldestReceivedAt);
      return found.slice(0, MAX_FOUND);
    },
  };
}

/** Object of the deliveries that wait for their handlers. */
const DELIVERIES_QUEUE = 'deliveries';

export function tooDeep(
  { depth, oldestAgeMs }: AlertThreshold,
  waiting: number,
  ageMs: number | null,
): string | undefined {
  const limit = depth ?? (oldestAgeMs === undefined ? DEFAULT_DEPTH : undefined);
  if (limit !== undefined && waiting >= limit) return `${waiting} items wait; the limit is ${limit}.`;
  if (oldestAgeMs !== undefined && ageMs !== null && ageMs >= oldestAgeMs)
    return `The oldest item has waited for ${formatDuration(ageMs)}; the limit is ${formatDuration(oldestAgeMs)}.`;
  return undefined;
}

export function lowDisk(dataDir: string, node: string): Condition {
  return {
    kind: 'disk.low',
    everyMs: seconds(30),
    own: `${node}:`,
    async find({ settings: { threshold } }, now) {
      const { bavail, blocks, bsize } = await statfs(dataDir);
      const free = bavail * bsize;
      const percent = blocks === 0 ? 100 : (bavail / blocks) * 100;
      const { freeBytes, freePercent = freeBytes === undefined ? DEFAULT_FREE_PERCENT : 0 } = threshold;
      if (free >= (freeBytes ?? 0) && percent >= freePercent) return [];
      return [
        {
          ...{ kind: 'disk.low', ...base(now) },
          object: { type: 'disk', id: `${node}:data`, namespaceId: null, labels: {} },
          title: `The disk of node ${node} is almost full`,
          message: `${Math.floor(free / 1024 ** 2)} MB (${percent.toFixed(1)} %) are free for the data folder.`,
          path: '/studio/',
        },
      ];
    },
  };
}

export function waitingApprovals(
  read: (before: number, limit: number, tenantId?: string) => Promise<WaitingApproval[] | undefined>,
): Condition {
  return {
    kind: 'approval.waiting',
    everyMs: seconds(10),
    async find(rule, now) {
      const { waitingMs = DEFAULT_WAITING_MS } = rule.settings.threshold;
      const waiting = await read(now - waitingMs, MAX_FOUND, onlyOf(rule));
      return waiting?.map(({ tenantId, runId, workflowId, since }) => ({
        ...{ kind: 'approval.waiting', ...base(now) },
        object: {
          type: 'run',
          id: runId,
          namespaceId: tenantId,
          labels: labelsOf({ workflow: workflowId }, tenantId),
        },
        title: `A run of ${workflowId} waits for approval`,
        message: `Run ${runId} waits since ${new Date(since).toISOString()}.`,
        path: `/studio/runs/${encodeURIComponent(runId)}`,
      }));
    },
  };
}

export interface ExpiringSecret {
  namespaceId: string;
  name: string;
  isConnection: boolean;
  expiresAt: number | null;
  /** Why a connection fails. */
  failure: string | null;
}

export function expiringSecrets(
  read: (before: number, limit: number, namespaceId?: string) => Promise<ExpiringSecret[]>,
): Condition {
  return {
    kind: 'secret.expiring',
    everyMs: minutes(1),
    async find(rule, now) {
      const { expiresWithinDays = DEFAULT_EXPIRES_DAYS } = rule.settings.threshold;
      const found = await read(now + expiresWithinDays * DAY_MS, MAX_FOUND, onlyOf(rule));
      return found.map((secret) => {
        const { namespaceId, name, isConnection, expiresAt, failure } = secret;
        const type = isConnection ? 'connection' : 'secret';
        const left = expiresAt === null ? 0 : expiresAt - now;
        return {
          ...{ kind: 'secret.expiring', ...base(now) },
          object: {
            type,
            id: `${namespaceId}/${type}/${name}`,
            namespaceId,
            labels: labelsOf({ [type]: name }, namespaceId),
          },
          title:
            failure === null
              ? `The ${type} ${name} ${left <= 0 ? 'has expired' : 'expires soon'}`
              : `The ${type} ${name} fails`,
          message:
            failure ?? (left <= 0 ? 'It can no longer be used.' : `It can be used for ${days(left)} more.`),
          path: isConnection ? '/studio/connections' : '/studio/secrets',
        };
      });
    },
  };
}

export function expiringCertificates(): Condition {
  return {
    kind: 'certificate.expiring',
    everyMs: minutes(10),
    async find({ settings: { threshold } }, now) {
      const { certificates = [], expiresWithinDays = DEFAULT_EXPIRES_DAYS } = threshold;
      const found = await Promise.all(
        certificates.map(async (target): Promise<Occurrence[]> => {
          const problem = await certificateProblem(target, now, expiresWithinDays * DAY_MS);
          if (problem === undefined) return [];
          return [
            {
              ...{ kind: 'certificate.expiring', ...base(now) },
              object: { type: 'certificate', id: target, namespaceId: null, labels: {} },
              ...problem,
              path: null,
            },
          ];
        }),
      );
      return found.flat();
    },
  };
}

async function certificateProblem(
  target: string,
  now: number,
  withinMs: number,
): Promise<Pick<Occurrence, 'title' | 'message'> | undefined> {
  try {
    const validTo = Date.parse(
      /^https:\/\//.test(target) ? await servedUntil(new URL(target)) : await fileUntil(target),
    );
    const left = validTo - now;
    if (left > withinMs) return undefined;
    const title = `The certificate of ${target} ${left <= 0 ? 'has expired' : 'expires soon'}`;
    return { title, message: `It is valid until ${new Date(validTo).toISOString()} (${days(left)}).` };
  } catch (error) {
    return { title: `The certificate of ${target} cannot be read`, message: messageOf(error) };
  }
}

async function fileUntil(file: string): Promise<string> {
  const pem = await readFile(file, 'utf8');
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [pem];
  const times = blocks.map((block) => new X509Certificate(block).validTo);
  return times.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0]!;
}

/** The chain is not verified, because an expired or private certificate must be read too. */
function servedUntil({ hostname, port }: URL): Promise<string> {
  return new Promise((resolve, reject) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({
      ...{ host, port: port === '' ? 443 : Number(port), rejectUnauthorized: false },
      ...(/[a-z]/i.test(host) && !host.includes(':') ? { servername: host } : {}),
    });
    socket.setTimeout(TLS_TIMEOUT_MS, () => socket.destroy(new Error('The server did not answer in time.')));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const { valid_to: validTo } = socket.getPeerCertificate();
      socket.destroy();
      if (validTo) resolve(validTo);
      else reject(new Error('The server sent no certificate.'));
    });
  });
}
