import { describe, expect, test } from 'vitest';
import type { SecretApprovalRecord, SecretApprovalStore } from '../../../src/store/ports/index.ts';
import { type OpenDriver, openFresh, times } from './driver.ts';

const APPROVAL: SecretApprovalRecord = {
  tenantId: 'acme',
  workflowId: 'notify',
  hash: 'h1',
  approvedBy: 'ops',
  approvedAt: 100,
};

/** Tests that every driver of SecretApprovalStore passes. @spec docs/secrets.md "In workflows" */
export function describeSecretApprovals(name: string, open: OpenDriver<SecretApprovalStore>): void {
  describe(`approvals of definitions that use secrets: ${name}`, () => {
    test('an approval belongs to one text in one tenant, and survives a restart', async () => {
      const { port, reopen } = await openFresh(open);
      await port.approve(APPROVAL, 20);
      const again = await reopen();
      expect(await again.find(APPROVAL)).toEqual(APPROVAL);
      for (const other of [{ tenantId: 'other' }, { workflowId: 'other' }, { hash: 'h2' }, { hash: 'H1' }])
        expect(await again.find({ ...APPROVAL, ...other })).toBeUndefined();
    });

    test('a repeated approval replaces the approver and the time', async () => {
      const { port } = await openFresh(open);
      await port.approve(APPROVAL, 20);
      await port.approve({ ...APPROVAL, approvedBy: 'ann', approvedAt: 200 }, 20);
      expect(await port.find(APPROVAL)).toEqual({ ...APPROVAL, approvedBy: 'ann', approvedAt: 200 });
    });

    test('the newest few approvals of a workflow are kept, and those of other workflows', async () => {
      const { port } = await openFresh(open);
      for (const other of [{ tenantId: 'other' }, { workflowId: 'other' }])
        await port.approve({ ...APPROVAL, ...other, approvedAt: 1 }, 3);
      for (let n = 1; n <= 5; n++) await port.approve({ ...APPROVAL, hash: `h${n}`, approvedAt: 100 + n }, 3);
      const found = await times(5, (n) => port.find({ ...APPROVAL, hash: `h${n + 1}` }));
      expect(found.map((one) => one?.hash)).toEqual([undefined, undefined, 'h3', 'h4', 'h5']);
      expect(await port.find({ ...APPROVAL, tenantId: 'other' })).toBeDefined();
      expect(await port.find({ ...APPROVAL, workflowId: 'other' })).toBeDefined();
    });

    test('the approval that was just given is kept, also if the clock went back', async () => {
      const { port } = await openFresh(open);
      for (let n = 1; n <= 3; n++) await port.approve({ ...APPROVAL, hash: `h${n}` }, 3);
      await port.approve({ ...APPROVAL, hash: 'late', approvedAt: 1 }, 3);
      expect(await port.find({ ...APPROVAL, hash: 'late' })).toMatchObject({ approvedAt: 1 });
    });

    test('concurrent approvals of two processes are all recorded', async () => {
      const { port, second } = await openFresh(open);
      const other = await second();
      await times(10, (n) => (n % 2 ? port : other).approve({ ...APPROVAL, hash: `h${n % 5}` }, 20));
      const found = await times(5, (n) => port.find({ ...APPROVAL, hash: `h${n}` }));
      expect(found.every(Boolean)).toBe(true);
    });
  });
}
