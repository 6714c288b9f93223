/** A table that scrolls inside itself where there is no room, and that the keyboard can scroll. */
import { Table } from "@mantine/core";
import type { ReactNode } from "react";

export interface Column {
  title: string;
  isNumber?: boolean;
  /** For those who hear the table alone: buttons need no heading to be seen. */
  isOnlyHeard?: boolean;
}

interface Props {
  label: string;
  columns: (string | Column)[];
  children: ReactNode;
  minWidth?: number;
  maxHeight?: number;
}

export function Rows({ label, columns, children, minWidth = 560, maxHeight }: Props) {
  return (
    <Table.ScrollContainer
      minWidth={minWidth}
      type="native"
      tabIndex={0}
      role="region"
      aria-label={label}
      {...(maxHeight && { mah: maxHeight, style: { overflowY: "auto" } })}
    >
      <Table stickyHeader={maxHeight !== undefined} verticalSpacing={6} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Heading key={typeof column === "string" ? column : column.title} column={column} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Heading({ column }: { column: string | Column }) {
  const { title, isNumber, isOnlyHeard } = typeof column === "string" ? { title: column } : (column as Column);
  return (
    <Table.Th scope="col" className={isNumber ? "number" : undefined} style={{ whiteSpace: "nowrap" }}>
      {isOnlyHeard ? <span className="only-heard">{title}</span> : title}
    </Table.Th>
  );
}
