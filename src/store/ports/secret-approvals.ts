/** Identifies the text of a workflow definition in a tenant. */
export interface ApprovalKey {
  tenantId: string;
  workflowId: string;
  /** Hash of the definition. */
  hash: string;
}

/** Approval that a definition uses the secrets of a tenant. */
export interface SecretApprovalRecord extends ApprovalKey {
  approvedBy: string;
  approvedAt: number;
}

export interface SecretApprovalStore {
  /** Records an approval, and deletes those of former texts of the definition but the newest `keep`. */
  approve(approval: SecretApprovalRecord, keep: number): Promise<void>;
  find(key: ApprovalKey): Promise<SecretApprovalRecord | undefined>;
}
