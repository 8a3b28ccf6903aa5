/** A row of `queue_item` without its content. */
export interface ItemRow {
  position: number;
  queueId: number;
  id: string;
  state: number;
  dueAt: number;
  attempt: number;
  token: string | null;
  orderKey: string | null;
  deliveryId: string | null;
  receivedAt: number;
  lastError: string | null;
  bodyBytes: number;
}

export interface ContentRow {
  headers: string | null;
  body: Uint8Array | null;
}
