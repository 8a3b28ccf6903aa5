import { describe, expect, test } from 'vitest';
import { AuditChain, type AuditDraft, ChainCheck } from '../../../src/kit/security/audit-chain.ts';
import type { AccessStore, AuditStore, FeedStore, RoleRecord } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const CHAIN = new AuditChain('an-internal-secret');
const DRAFT: AuditDraft = {
  at: 10,
  actor: 'ci',
  actorKind: 'static',
  tokenId: null,
  role: 'admin',
  action: 'role.grant',
  object: 'role:host:bob',
  namespaceId: 'acme',
  requestId: 'r1',
  traceId: 't1',
  outcome: 'succeeded',
  status: 200,
  digest: 'd',
};
const linkOf =
  (draft: Partial<AuditDraft> = {}) =>
  (head: Parameters<AuditChain['link']>[1]) =>
    CHAIN.link({ ...DRAFT, ...draft }, head);

const ROLE: RoleRecord = {
  subject: 'host:bob',
  namespaceId: 'acme',
  role: 'viewer',
  hostId: 'bob',
  grantedBy: 'ci',
  grantedAt: 5,
};

type Part = { access: AccessStore; audit: AuditStore; feed: FeedStore };

/** What every driver of AccessStore and AuditStore does. @spec docs/security.md "Audit log" */
export function describeAccessAndAudit(name: string, open: OpenDriver<Part>): void {
  describe(`access and audit: ${name}`, () => {
    test('roles and scopes are stored with their audit entries and announced in the feed', async () => {
      const { port, reopen } = await openFresh(open);
      const start = await port.feed.begin();
      expect(await port.access.grant(ROLE, linkOf())).toBeNull();
      expect(await port.access.grant({ ...ROLE, role: 'editor' }, linkOf())).toBe('viewer');
      await port.access.setScopes(
        { clientId: 'c1', hostId: 'client:1', scopes: ['messages:send'] },
        linkOf({ action: 'client.scopes' }),
      );
      const { changes } = await port.feed.read(start, 10);
      expect(changes.map(({ topic, key }) => `${topic} ${key}`)).toEqual([
        'access host:bob',
        'access host:bob',
        'access c1',
      ]);
      const again = await reopen();
      expect(await again.access.roles()).toEqual([{ ...ROLE, role: 'editor' }]);
      expect(await again.access.scopes()).toEqual([
        { clientId: 'c1', hostId: 'client:1', scopes: ['messages:send'] },
      ]);
      expect((await again.audit.after(0, 10)).map(({ action }) => action)).toEqual([
        'role.grant',
        'role.grant',
        'client.scopes',
      ]);
    });

    test('taking away a role that does not exist changes nothing and writes no entry', async () => {
      const { port } = await openFresh(open);
      expect(await port.access.revoke(ROLE, linkOf())).toBe(false);
      expect(await port.audit.head()).toBeUndefined();
      await port.access.grant(ROLE, linkOf());
      expect(await port.access.revoke(ROLE, linkOf({ action: 'role.revoke' }))).toBe(true);
      expect(await port.access.roles()).toEqual([]);
      expect((await port.audit.head())?.sequence).toBe(2);
    });

    test('a change whose audit entry cannot be made is not made either', async () => {
      const { port } = await openFresh(open);
      const failing = () => {
        throw new Error('no entry');
      };
      await expect(port.access.grant(ROLE, failing)).rejects.toThrow();
      expect(await port.access.roles()).toEqual([]);
    });

    test('concurrent writers of several processes make one chain without gaps', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      await times(40, (i) => (i % 2 ? port : other).audit.append(linkOf({ requestId: `r${i}` })));
      const entries = await port.audit.after(0, 100);
      expect(entries).toHaveLength(40);
      expect(new Set(entries.map(({ requestId }) => requestId)).size).toBe(40);
      const check = new ChainCheck();
      for (const entry of entries) expect(check.next(entry)).toBeUndefined();
      const head = await port.audit.head();
      expect(head).toMatchObject(check.last!);
      expect(CHAIN.isSigned(head!)).toBe(true);
    });

    test('entries are filtered, newest first, with a cursor', async () => {
      const { port } = await openFresh(open);
      await port.audit.append(linkOf({ at: 1, action: 'token.mint', actor: 'a' }));
      await port.audit.append(linkOf({ at: 2, action: 'token.revoke', namespaceId: 'other' }));
      await port.audit.append(linkOf({ at: 3, action: 'tokens', object: 'x' }));
      const listed = async (filter: Partial<Parameters<AuditStore['list']>[0]>) =>
        (await port.audit.list({ limit: 10, ...filter })).map(({ sequence }) => sequence);
      expect(await listed({})).toEqual([3, 2, 1]);
      expect(await listed({ before: 3, limit: 1 })).toEqual([2]);
      expect(await listed({ action: 'token.' })).toEqual([2, 1]);
      expect(await listed({ action: 'token.mint' })).toEqual([1]);
      expect(await listed({ namespaceId: 'other' })).toEqual([2]);
      expect(await listed({ actor: 'a' })).toEqual([1]);
      expect(await listed({ object: 'x' })).toEqual([3]);
      expect(await listed({ since: 2, until: 3 })).toEqual([2]);
    });
  });
}
