/** Where short messages appear; fetched after the page itself. */
import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

export default function Messages() {
  return <Notifications position="bottom-right" />;
}
