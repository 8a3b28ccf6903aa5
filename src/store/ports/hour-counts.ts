/** Range of whole hours in epoch ms. `to` is exclusive. */
export interface HourRange {
  from: number;
  to: number;
}

/** Deliveries that were received in one hour. `received` counts all of them, also those without a final status. */
export interface DeliveryHourCounts {
  hour: number;
  received: number;
  succeeded: number;
  failed: number;
  unhandled: number;
}

/** Workflow runs that were created in one hour. `started` counts all of them, also unfinished ones. */
export interface RunHourCounts {
  hour: number;
  started: number;
  succeeded: number;
  failed: number;
  cancelled: number;
}
